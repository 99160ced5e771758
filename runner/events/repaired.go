package events

import "github.com/deckhand-dev/deckhand/runner/step"

// Repaired says that requests to a model are sent with a change, because its provider refused one
// without it, or would refuse it. The change is kept for the rest of the attempt.
type Repaired struct {
	Step int64 `json:"step"`
	// Kind is Field, Files, OutputLimit, Reasoning or ToolSchema.
	Kind string `json:"kind"`
	// Change says what is changed.
	Change string `json:"change"`
	// Tool is the name of the tool whose schema is changed.
	Tool string `json:"tool,omitempty"`
}

// EventType names the event.
func (Repaired) EventType() step.EventType { return step.EventRepaired }
