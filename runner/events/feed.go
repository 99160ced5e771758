package events

import (
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/pubsub"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// An Event is one event on its way to its readers: its message with its
// payload, and before it is numbered. What streams from a model is as the model
// wrote it; it is for the Writer to keep secrets out of what people read.
type Event struct {
	At time.Time
	// Scope is where in the tree of sessions it happened.
	Scope   step.Scope
	Message string
	Payload Payload
}

// A Feed delivers events to listeners. Nothing waits for them.
type Feed struct {
	bus *pubsub.Bus[Event]
	now func() time.Time
}

// NewFeed returns a Feed without listeners.
func NewFeed(now func() time.Time) *Feed {
	return &Feed{bus: pubsub.New[Event](), now: now}
}

// Emit delivers an event to all listeners; message says it in words. It never blocks.
func (f *Feed) Emit(scope step.Scope, message string, p Payload) {
	f.bus.Publish(Event{At: f.now().UTC(), Scope: scope, Message: message, Payload: p})
}

// Subscribe opens a queue for as many events as size; keep says which are
// wanted, nil wants all.
func (f *Feed) Subscribe(size int, keep func(Event) bool) *pubsub.Subscription[Event] {
	return f.bus.Subscribe(size, keep)
}
