package journal

import "github.com/deckhand-dev/deckhand/runner/step"

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
