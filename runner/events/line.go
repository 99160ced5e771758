package events

import (
	"encoding/json"
	"time"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// LineVersion is the version of the form of a Line; within it fields are only added.
const LineVersion = 1

// A Line is one line of a runner's standard output: an Event as people and programs that
// follow a Run read it, without secrets. State comes from the journal and the Run's status,
// never from events.
type Line struct {
	V int `json:"v"`
	// N rises by one over all attempts of a Run; a gap is announced by a
	// dropped event.
	N       int64          `json:"n"`
	T       time.Time      `json:"t"`
	Run     string         `json:"run,omitempty"`
	Attempt int            `json:"attempt,omitempty"`
	Scope   step.Scope     `json:"scope,omitzero"`
	Type    step.EventType `json:"type"`
	// Message says it in words, for people.
	Message string `json:"message,omitempty"`
	// Data is the Payload of the Event.
	Data json.RawMessage `json:"data,omitempty"`
}
