package graph

import (
	"cmp"
	"errors"
)

// Next computes what comes next. It does not change its arguments. If its result is recorded and Next is called again
// with the same children, it returns the same states and starts nothing.
func (g *Graph) Next(s Seen, o Evaluator) Next {
	w := g.newPass(s, o)
	w.connectWatcher()
	for _, i := range g.order { // what expressions read is known before they are asked
		w.settleNode(w.nodes[i])
	}
	w.attributeStops()
	w.advance(w.mainNodes, w.endReason)
	w.advance(w.finals, w.finallyEndReason)
	return w.result()
}

// pass is one computation of Next.
type pass struct {
	seen         Seen
	evaluator    Evaluator
	nodes        []*node // in the order of the nodes
	mainNodes    []*node // those that are not final
	finals       []*node
	childrenLeft int // of Seen.ChildrenLeft
	problems     map[string]string
}

// node is a node with its state.
type node struct {
	Node
	Status
	recorded       Status   // as recorded
	dependencies   []*node  // for these
	children       []*Child // by number, from the first; nil: not seen
	active         int      // that work
	activeAfterGap int      // of active, that exist after a gap
	started        int      // of active, that this look starts
	ready          bool     // it may start a child, or ask
}

// newPass collects the facts about each node.
func (g *Graph) newPass(s Seen, o Evaluator) *pass {
	w := &pass{seen: s, evaluator: o, childrenLeft: s.ChildrenLeft, problems: map[string]string{}}
	for _, n := range g.nodes {
		p := &node{Node: n, Status: validStatus(s.Nodes[n.Name])}
		p.recorded = p.Status
		w.nodes = append(w.nodes, p)
		if n.Final {
			w.finals = append(w.finals, p)
		} else {
			w.mainNodes = append(w.mainNodes, p)
		}
	}
	for i, p := range w.nodes {
		for _, j := range g.waits[i] {
			p.dependencies = append(p.dependencies, w.nodes[j])
		}
	}
	for i := range s.Children {
		if j, there := g.index[s.Children[i].Node]; there {
			w.nodes[j].addChild(&s.Children[i])
		}
	}
	for _, p := range w.nodes {
		p.adopt()
	}
	return w
}

// adopt counts children that exist but are not recorded yet. Items are created in parallel: if a quota refused one of
// them, a later one may exist. Items after such a gap are found when their turn comes; until then it is only known
// whether they are active. Other children are created one after the other.
func (n *node) adopt() {
	if n.Kind != Items {
		n.Started = min(max(n.Started, len(n.children)), n.limit())
		return
	}
	for n.Started < len(n.children) && n.children[n.Started] != nil {
		n.Started++
	}
	n.Started = min(n.Started, n.limit())
	for _, c := range n.children[min(n.Started, len(n.children)):] {
		if c != nil && !c.Done {
			n.activeAfterGap++
		}
	}
}

// validStatus returns a status with its numbers within their bounds, and with Waiting in place of an unknown state.
func validStatus(s Status) Status {
	if s.State != Running && !s.State.Ended() {
		s.State = Waiting
	}
	for _, n := range []*int{&s.Total, &s.Started, &s.Succeeded, &s.Failed, &s.Skipped} {
		*n = min(max(*n, 0), MaxChildren)
	}
	return s
}

// addChild takes note of a child.
func (n *node) addChild(c *Child) {
	i := c.Number - n.number(0)
	if i < 0 || i >= n.limit() || n.State.Ended() {
		return
	}
	for len(n.children) <= i {
		n.children = append(n.children, nil)
	}
	n.children[i] = c
}

// child returns the child at a position, or nil.
func (n *node) child(i int) *Child {
	if i >= len(n.children) {
		return nil
	}
	return n.children[i]
}

// number returns the number of the child at a position.
func (n *node) number(i int) int {
	if n.Kind == Loop {
		return i + 1
	}
	return i
}

// firstRelevant returns the number of the first child that still matters. Of iterations only the last matters.
func (n *node) firstRelevant() int {
	if n.Kind == Loop {
		return max(0, n.Started-1)
	}
	return 0
}

// limit returns how many children the node may have in total.
func (n *node) limit() int {
	switch {
	case n.Kind == Approval:
		return 0
	case n.Kind == Loop:
		return max(1, min(n.MaxIterations, MaxChildren))
	case n.Kind == Items && n.Total > 0:
		return n.Total
	case n.Kind == Items:
		return MaxItems
	}
	return 1
}

// parallel returns how many children of the node may be active at once.
func (n *node) parallel() int {
	if n.Kind == Items {
		return max(1, n.MaxParallel)
	}
	return 1
}

// willFail reports whether a node starts no more children and fails when its children have ended.
func (n *node) willFail() bool { return n.State == Running && n.Reason != "" && !isWaiting(n.Reason) }

// isWaiting reports whether a reason is one for which a child waits.
func isWaiting(reason string) bool { return reason == ReasonQueued || reason == ReasonQuotaExceeded }

// failing reports whether the node has failed, or will.
func (n *node) failing() bool { return n.State == Failed || n.willFail() }

// fail fails a node when none of its children is active.
func (n *node) fail(reason string) {
	n.State, n.Reason, n.ready = Running, cmp.Or(reason, reasonFailed), false
	n.conclude()
}

// conclude ends a node that will fail and has no active children.
func (n *node) conclude() {
	n.Skipped = max(0, n.Total-n.Started)
	if n.active == 0 {
		n.State = Failed
	}
}

// problem fails a node of an expression.
func (w *pass) problem(p *node, err error) {
	w.problems[p.Name] = err.Error()
	p.fail(reasonOf(err))
}

// reasonOf returns the reason of a node that an error of an Evaluator fails.
func reasonOf(err error) string {
	if e, ok := errors.AsType[*ReasonError](err); ok && e.Reason != "" {
		return e.Reason
	}
	return ReasonExpression
}

// Watcher is an Evaluator that reads the states of nodes while it is called: in one pass a
// node may end and another, which reads that, start. Next calls Watch once, before it
// evaluates anything; the function is valid after Next too.
type Watcher interface {
	Watch(stands func(node string) Status)
}

// connectWatcher calls Watch if the Evaluator has this method.
func (w *pass) connectWatcher() {
	watcher, wants := w.evaluator.(Watcher)
	if !wants {
		return
	}
	at := map[string]*node{}
	for _, p := range w.nodes {
		at[p.Name] = p
	}
	watcher.Watch(func(node string) Status {
		if p := at[node]; p != nil {
			return p.Status
		}
		return Status{State: Waiting}
	})
}

// State is the state of a node.
type State string

// The states of a node.
const (
	Waiting    State = "Waiting"
	Running    State = "Running"
	Succeeded  State = "Succeeded"
	Failed     State = "Failed"
	Skipped    State = "Skipped"    // its condition was false
	NotReached State = "NotReached" // the Run ended first
)

// States are all states of a node.
var States = []State{Waiting, Running, Succeeded, Failed, Skipped, NotReached}

// Ended reports whether a node in this state has ended.
func (s State) Ended() bool {
	return s == Succeeded || s == Failed || s == Skipped || s == NotReached
}

// Reasons of nodes and of Runs from this package. Other reasons come from children, Admit, a ReasonError, End and
// FinallyEnd.
const (
	ReasonQueued         = "Queued"           // waits: too little is left while others work
	ReasonQuotaExceeded  = "QuotaExceeded"    // waits: the cluster has no room
	ReasonCancelled      = "Cancelled"        // the Run ended while the node worked
	ReasonRunDeleted     = "RunDeleted"       // a child is gone
	ReasonExpression     = "ExpressionFailed" // an expression failed
	ReasonTooManyItems   = "TooManyItems"     // more than one node, or the Run, may have
	ReasonIterationLimit = "IterationLimit"   // a Loop that did not become good
	ReasonDenied         = "Denied"           // an Approval that was denied, or expired
	ReasonNodeFailed     = "NodeFailed"       // of a Run: a node failed that is not Continue

	reasonStopped = "Stopped" // of a child that was told to stop
	reasonFailed  = "Failed"  // of a child that says no other
)

// Status is the recorded status of a node between two passes.
type Status struct {
	State  State
	Reason string

	// Numbers of children. Total is the number of items or, for other nodes, of begun children. Skipped are items that
	// never began because the node failed first.
	Total, Started, Succeeded, Failed, Skipped int
}

// Child is a child that exists.
type Child struct {
	Node   string
	Number int // item from 0, iteration from 1, else 0

	Done      bool
	Succeeded bool
	Reason    string // why it failed
}

// Start is a child to make.
type Start struct {
	Node   string
	Number int
}

// ApprovalState is the state of an approval.
type ApprovalState string

// The states of an approval. Expired counts as Denied.
const (
	Open     ApprovalState = "Open"
	Approved ApprovalState = "Approved"
	Denied   ApprovalState = "Denied"
	Expired  ApprovalState = "Expired"
)

// Seen is all that a pass depends on.
type Seen struct {
	// Nodes are the last results of Next; an absent node is Waiting.
	Nodes map[string]Status
	// Children are the existing children, in any order. If a begun child is missing, its node fails, so the caller must
	// make sure that it does not exist.
	Children []Child
	// Approvals are the states of approvals, by node.
	Approvals map[string]ApprovalState

	// End is why only final nodes may start ("Stopped", "TokenLimit", …), or empty. Once it is set it stays. If all
	// nodes had ended before, the Run does not end with this reason.
	End string
	// FinallyEnd is why final nodes may not start either, or empty.
	FinallyEnd string
	// Paused means that nothing is started and nothing is stopped. Ended children are recorded.
	Paused bool

	// ChildrenLeft is how many more children the Run may have. The first child of a final node does not count, so that
	// finally can run after the others have used up the number.
	ChildrenLeft int
	// Admit is called for each child that would start now, in the order of nodes and numbers, and reserves what the
	// child needs. With ReasonQueued and ReasonQuotaExceeded the child waits; any other reason fails its node. Nil
	// admits all. Children that were admitted but are not in Next.Start must not start.
	Admit func(node string, number int) (ok bool, reason string)
}

// Evaluator evaluates expressions. Its results depend only on the results of nodes that a node waits for, so repeated
// evaluations are equal. An error fails the node, with the reason of a ReasonError if it is one.
type Evaluator interface {
	// When is the condition of a node.
	When(node string) (bool, error)
	// Items is how many items a node has.
	Items(node string) (int, error)
	// Until reports whether a Loop ends after an iteration, which succeeded.
	Until(node string, iteration int) (bool, error)
	// Input returns an error if the input of a child, or the message of an approval, cannot be computed.
	Input(node string, number int) error
}

// A ReasonError is an error of an Evaluator with the reason of the node that it
// fails.
type ReasonError struct {
	Reason string
	Err    error
}

func (e *ReasonError) Error() string { return e.Err.Error() }

func (e *ReasonError) Unwrap() error { return e.Err }

// Next is the result of a pass.
type Next struct {
	// Nodes are the statuses of all nodes after Start has been executed.
	Nodes map[string]Status
	// Start are the children to create, in order. If a child of a node cannot be created, no later one of the same node
	// may be: the begun items are always the first ones.
	Start []Start
	// Ask are the approvals that are open, asked now or before.
	Ask []string
	// Cancel are the nodes whose active children must be stopped.
	Cancel []string

	// Ended is true when every node has ended. Reason is then empty if the Run succeeded, otherwise ReasonNodeFailed or
	// the reason that ended it; Failed names the node that ended it; Message has the counts.
	Ended                   bool
	Reason, Message, Failed string

	// Problems are the causes of nodes that failed without a failed child.
	Problems map[string]string
}
