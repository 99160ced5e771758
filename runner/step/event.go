package step

import (
	"encoding/json"
	"time"
)

// EventVersion is the version of the event format; within it fields are only
// added.
const EventVersion = 1

// An Event is one line of a runner's standard output: what happened, for
// people and programs that follow a Run. State comes from the journal and the
// Run's status, never from events.
type Event struct {
	V int `json:"v"`
	// N rises by one over all attempts of a Run; a gap is announced by a
	// dropped event.
	N       int64     `json:"n"`
	T       time.Time `json:"t"`
	Run     string    `json:"run,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	Scope   Scope     `json:"scope,omitzero"`
	Type    EventType `json:"type"`
	// Message says it in words, for people.
	Message string          `json:"message,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// EventType is the closed list of what may happen.
type EventType string

// The types of events.
const (
	EventRunStarted    EventType = "run.started"
	EventStateChanged  EventType = "state.changed"
	EventStepStarted   EventType = "step.started"
	EventTextDelta     EventType = "text.delta"
	EventThinkingDelta EventType = "thinking.delta"
	EventCallStarted   EventType = "call.started"
	EventCallOutput    EventType = "call.output"
	EventCallFinished  EventType = "call.finished"
	EventCallDenied    EventType = "call.denied"
	EventStepFinished  EventType = "step.finished"
	EventReset         EventType = "reset"
	EventRepaired      EventType = "request.repaired"
	EventModelRouted   EventType = "model.routed"
	EventCompacted     EventType = "compacted"
	EventNudged        EventType = "nudged"
	EventLimitNear     EventType = "limit.near"
	EventWarning       EventType = "warning"
	EventPending       EventType = "pending"
	EventDecided       EventType = "decided"
	EventChildStarted  EventType = "child.started"
	EventChildFinished EventType = "child.finished"
	EventHostRefused   EventType = "host.refused"
	EventFile          EventType = "file"
	EventFiles         EventType = "files"
	EventDropped       EventType = "dropped"
	EventRunFinished   EventType = "run.finished"
)
