package events

import "github.com/deckhand-dev/deckhand/runner/step"

// ModelRouted says that a route of the agent chose another Model for a turn, that it could not, or
// that its expression failed.
type ModelRouted struct {
	// Step is the number of the turn that the Model answers. A hook that adds a message before it
	// makes it higher.
	Step int64 `json:"step"`
	// From is the Model of the last answer, or of the agent.
	From string `json:"from"`
	// To is the chosen Model.
	To string `json:"to"`
	// When is the expression of the route; empty: it has none, or the Model is the agent's own.
	When string `json:"when,omitempty"`
	// UncachedTokens is the input that From has in its prompt cache and To has not, as far as
	// providers reported that.
	UncachedTokens int64 `json:"uncachedTokens,omitempty"`
	// UncachedMicroUSD is what these tokens cost more than from the cache of To, in millionths of
	// a US dollar; 0: nothing, or the prices are not known.
	UncachedMicroUSD int64 `json:"uncachedMicroUSD,omitempty"`
	// Kept is true if From answers on: the tool loop has reasoning that To cannot read.
	Kept bool `json:"kept,omitempty"`
	// Error is why the expression failed, so that To is the Model of the agent.
	Error string `json:"error,omitempty"`
}

// EventType names the event.
func (ModelRouted) EventType() step.EventType { return step.EventModelRouted }
