package eventlog

import (
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/pubsub"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Feed delivers events to listeners. Nothing waits for them.
type Feed struct {
	bus *pubsub.Bus[events.Event]
	now func() time.Time
}

// NewFeed returns a Feed without listeners.
func NewFeed(now func() time.Time) *Feed {
	return &Feed{bus: pubsub.New[events.Event](), now: now}
}

// Emit delivers an event to all listeners; message says it in words. It never blocks.
func (f *Feed) Emit(scope step.Scope, message string, p events.Payload) {
	f.bus.Publish(events.Event{At: f.now().UTC(), Scope: scope, Message: message, Payload: p})
}

// Subscribe opens a queue for as many events as size; keep says which are
// wanted, nil wants all.
func (f *Feed) Subscribe(size int, keep func(events.Event) bool) *pubsub.Subscription[events.Event] {
	return f.bus.Subscribe(size, keep)
}
