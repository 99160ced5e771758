package graph

import (
	"cmp"
	"errors"
)

// Next is what comes next. It changes nothing of what it is given. What it says,
// recorded and asked about again with the same children, says the same and starts
// nothing.
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

// pass is one computation of what comes next.
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

// newPass gathers what is known of each node.
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
// them, a later one may exist. Items after such a gap are found again when their turn comes; until then it is only known
// whether they are active. Other children are created one after the other.
func (p *node) adopt() {
	if p.Kind != Items {
		p.Started = min(max(p.Started, len(p.children)), p.limit())
		return
	}
	for p.Started < len(p.children) && p.children[p.Started] != nil {
		p.Started++
	}
	p.Started = min(p.Started, p.limit())
	for _, c := range p.children[min(p.Started, len(p.children)):] {
		if c != nil && !c.Done {
			p.activeAfterGap++
		}
	}
}

// validStatus is a status that makes sense.
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
func (p *node) addChild(c *Child) {
	i := c.Number - p.number(0)
	if i < 0 || i >= p.limit() || p.State.Ended() {
		return
	}
	for len(p.children) <= i {
		p.children = append(p.children, nil)
	}
	p.children[i] = c
}

// child is the one at a place; nil: it is not there.
func (p *node) child(i int) *Child {
	if i >= len(p.children) {
		return nil
	}
	return p.children[i]
}

// number is that of the child at a place.
func (p *node) number(i int) int {
	if p.Kind == Loop {
		return i + 1
	}
	return i
}

// firstRelevant is the place of the first child that still matters: of iterations only
// the last does.
func (p *node) firstRelevant() int {
	if p.Kind == Loop {
		return max(0, p.Started-1)
	}
	return 0
}

// limit is how many children it may have in all.
func (p *node) limit() int {
	switch {
	case p.Kind == Approval:
		return 0
	case p.Kind == Loop:
		return max(1, min(p.MaxIterations, MaxChildren))
	case p.Kind == Items && p.Total > 0:
		return p.Total
	case p.Kind == Items:
		return MaxItems
	}
	return 1
}

// parallel is how many of them may work at once.
func (p *node) parallel() int {
	if p.Kind == Items {
		return max(1, p.MaxParallel)
	}
	return 1
}

// willFail reports whether a node starts nothing more and fails when its children have ended.
func (p *node) willFail() bool { return p.State == Running && p.Reason != "" && !isWaiting(p.Reason) }

// isWaiting reports whether a reason is one of those that keep a child waiting.
func isWaiting(reason string) bool { return reason == ReasonQueued || reason == ReasonQuotaExceeded }

// failing says that it has failed, or will.
func (p *node) failing() bool { return p.State == Failed || p.willFail() }

// fail fails a node, once nothing of it works.
func (p *node) fail(reason string) {
	p.State, p.Reason, p.ready = Running, cmp.Or(reason, reasonFailed), false
	p.conclude()
}

// conclude ends a doomed node of which nothing works.
func (p *node) conclude() {
	p.Skipped = max(0, p.Total-p.Started)
	if p.active == 0 {
		p.State = Failed
	}
}

// problem fails a node of an expression.
func (w *pass) problem(p *node, err error) {
	w.problems[p.Name] = err.Error()
	p.fail(reasonOf(err))
}

// reasonOf is the reason of a node that an error of an Evaluator fails.
func reasonOf(err error) string {
	if e, ok := errors.AsType[*ReasonError](err); ok && e.Reason != "" {
		return e.Reason
	}
	return ReasonExpression
}
