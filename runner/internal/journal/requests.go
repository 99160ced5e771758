package journal

import (
	"encoding/json"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Request is what a person is about to be asked: whether a call may be made,
// or for more of what is used up. Or it is what the operator is asked for a
// child Run. Who takes up the session asks the same, and counts the time from
// here on.
type Request struct {
	// ID is what a Decision names.
	ID string `json:"id"`
	// CallID is the call that waits for it; empty: a limit does.
	CallID string `json:"callID,omitempty"`
	// Digest is that of the call as it would be made.
	Digest string `json:"digest,omitempty"`
	// Args are the canonical arguments of the call, and Written the digest of the
	// arguments of which the tool made them; empty: the tool has no canonical form,
	// or an older runner wrote this.
	Args    json.RawMessage `json:"args,omitempty"`
	Written string          `json:"written,omitempty"`
	// Groups and Users are the approvers: the members of the groups, and the users; without
	// both, all users who may decide at all.
	Groups []string `json:"groups,omitempty"`
	Users  []string `json:"users,omitempty"`
	Source
	// Delegation is what a child Run is wanted for; nil: a person is asked.
	Delegation *Delegation `json:"delegation,omitempty"`
}

// A Source is what wants a person to be asked about a call: a rule, in the
// policy of an agent, about a tool.
type Source struct {
	Agent string `json:"agent,omitempty"`
	Rule  string `json:"rule,omitempty"`
	Tool  string `json:"tool,omitempty"`
}

// A Decision is what a person decided, as the runner acted on it.
type Decision struct {
	// Name is the name of the Decision object, By who made it.
	Name string `json:"name"`
	By   string `json:"by,omitempty"`
	// Request is the id of what was asked; empty for a message.
	Request string `json:"request,omitempty"`
	// Type is Approve, Deny, Answer, Grant or Message.
	Type string `json:"type"`
	// Digest is that of the call which an Approve or a Deny is about; Scope is Run
	// where an Approve is good for all calls of its Source; Reason is why.
	Digest string `json:"digest,omitempty"`
	Scope  string `json:"scope,omitempty"`
	Reason string `json:"reason,omitempty"`
	Source
	// Value is the answer; a message is a step.
	Value string `json:"value,omitempty"`
	// Images are the files below the workspace that a message shows which answers a question.
	Images []string `json:"images,omitempty"`
	// Refused says why the runner could not act on it; empty when it did.
	Refused string `json:"refused,omitempty"`
	// Steps, Tokens and CostMicroUSD are what is granted on top of the limits.
	Steps        int64 `json:"steps,omitempty"`
	Tokens       int64 `json:"tokens,omitempty"`
	CostMicroUSD int64 `json:"costMicroUSD,omitempty"`
}

// A Delegation is a piece of work that a call has the operator make a child Run
// for.
type Delegation struct {
	// Agent is the name of the agent that does it, Args its whole input as canonical
	// JSON.
	Agent string `json:"agent"`
	Args  string `json:"args"`
}

// A Child is how a child Run ended, or why there is none.
type Child struct {
	// Request is what asked for it.
	Request string `json:"request"`
	// Run is its name; empty: none was made, and Message says why.
	Run     string `json:"run,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Text    string `json:"text,omitempty"`
	Output  string `json:"output,omitempty"`
	// Usage is what was charged for it.
	Usage step.Usage `json:"usage,omitzero"`
}
