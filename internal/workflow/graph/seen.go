package graph

// State is how far a node came.
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

// Ended says whether a node in this state has ended.
func (s State) Ended() bool {
	return s == Succeeded || s == Failed || s == Skipped || s == NotReached
}

// Reasons of nodes and of Runs that this package gives. Others are those of
// children, of Admit, of a ReasonError, of End and of FinallyEnd.
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

// Status is what is recorded of a node between two passes.
type Status struct {
	State  State
	Reason string

	// The children: how many there will be of Items, else as many as began; how many
	// began; how they ended; and the items that never began because the node failed
	// first.
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

// ApprovalState is what a user decided about an approval.
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
	// Nodes are as Next said them last; one that is absent is Waiting.
	Nodes map[string]Status
	// Children are those that exist, in any order. Of one that began and is not
	// among them the node fails, so the caller makes sure that it does not exist.
	Children []Child
	// Approvals are the states of approvals, by node.
	Approvals map[string]ApprovalState

	// End is why nothing may start any more but final nodes ("Stopped", "TokenLimit",
	// …); empty: it may. Once it is set it stays. It is not how the Run ends where
	// nothing was left to be ended by it.
	End string
	// FinallyEnd is the same for final nodes.
	FinallyEnd string
	// Paused is that nothing starts and nothing is stopped. What ends is recorded.
	Paused bool

	// ChildrenLeft is how many more children the Run may have. The first one of a final node
	// needs none, so that finally runs when the others have used it up.
	ChildrenLeft int
	// Admit is asked for each child that would start now, node by node in their
	// order, then by number, and sets aside what it needs. ReasonQueued and
	// ReasonQuotaExceeded keep it waiting; any other reason fails its node. Nil
	// admits all. What was admitted and is not in Next.Start shall not start.
	Admit func(node string, number int) (ok bool, reason string)
}

// Evaluator evaluates expressions. Its results depend on nothing but what the nodes that
// a node waits for said, so that asking again changes nothing. An error fails the
// node, with the reason of a ReasonError if it is one.
type Evaluator interface {
	// When is the condition of a node.
	When(node string) (bool, error)
	// Items is how many items a node has.
	Items(node string) (int, error)
	// Until is whether a Loop is good after an iteration, which succeeded.
	Until(node string, iteration int) (bool, error)
	// Input is whether what a child is given, or an approval says, can be worked out.
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

// Next is what comes next.
type Next struct {
	// Nodes are all nodes as they are when Start has been made.
	Nodes map[string]Status
	// Start are the children to make, in order. Who cannot make one makes no later one
	// of the same node: items that began are the first ones.
	Start []Start
	// Ask are the approvals that are open, asked now or before.
	Ask []string
	// Cancel are the nodes whose children that work are to be stopped.
	Cancel []string

	// Ended is that every node has. Reason is then empty if all was done, else
	// ReasonNodeFailed or what ended it; Failed names the node that ended it; Message
	// counts.
	Ended                   bool
	Reason, Message, Failed string

	// Problems are what nodes that failed without a child failed of.
	Problems map[string]string
}
