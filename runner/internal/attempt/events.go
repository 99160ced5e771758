package attempt

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/eventlog"
	"github.com/deckhand-dev/deckhand/runner/internal/pubsub"
	"github.com/deckhand-dev/deckhand/runner/internal/telemetry"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// openEvents starts the feed of events and its subscribers.
func (a *attempt) openEvents() {
	o := eventlog.Options{
		Out: a.Stdout, Run: a.task.Run.Name, Attempt: a.task.Attempt,
		After: eventlog.First(a.task.Attempt, a.journal.Restarts()),
		Mode:  eventlog.Mode(a.snapshot.Agent.Events), Redact: a.redact, Now: a.Now,
	}
	a.events = eventlog.New(o)
	if a.Subscribe != nil {
		a.Subscribe(a.events.Feed)
	}
	if o.Feed = a.events.Feed; a.task.Durable && !a.ByHand && o.Mode != eventlog.None {
		var err error
		if a.stored, err = storeEvents(a.State, o); err != nil {
			a.Log.Warn("The events are not stored on the volume", "error", err)
		}
	}
	a.listeners = startListeners(a.events.Feed, a.registry.Listeners())
	a.tracer = telemetry.Start(a.events.Feed, telemetry.Options{
		Task: a.task, Snapshot: a.snapshot, Redact: a.redact,
		Warn: func(err error) { a.Log.Warn("Spans are dropped", "error", a.redact.String(err.Error())) },
	})
}

// storedEvents are the events of a Run with a volume, stored beside the journal: kubectl deckhand
// logs reads them after the pods were deleted. Deltas are left out, because each step has the whole
// text. Nil: they are not stored.
type storedEvents struct {
	writer *eventlog.Writer
	file   *eventlog.File
}

// storeEvents stores the events of a feed in the state directory.
func storeEvents(state string, o eventlog.Options) (*storedEvents, error) {
	file, err := eventlog.OpenFile(filepath.Join(state, task.EventsFolder))
	if err != nil {
		return nil, err
	}
	o.Out, o.Mode = file, eventlog.Steps
	return &storedEvents{writer: eventlog.New(o), file: file}, nil
}

// close stores queued events, at most as long as timeout. If the disk does not respond, the file stays open until the
// process ends.
func (s *storedEvents) close(timeout time.Duration) {
	if s != nil && s.writer.Close(timeout) {
		_ = s.file.Close() // all is written
	}
}

// listenerQueue is how many events may wait for one listener.
const listenerQueue = 1024

// listeners are the listeners of a custom runner, each with its own queue and goroutine.
type listeners struct {
	subscriptions []*pubsub.Subscription[events.Event]
	all           sync.WaitGroup
}

// startListeners calls functions with each event of a feed. A function that panics is not called again.
func startListeners(feed *eventlog.Feed, functions []registry.Listener) *listeners {
	l := &listeners{}
	for _, tell := range functions {
		subscription := feed.Subscribe(listenerQueue, nil)
		l.subscriptions = append(l.subscriptions, subscription)
		l.all.Go(func() {
			defer subscription.Close()
			defer func() { _ = recover() }()
			for event := range subscription.C() {
				tell(event)
			}
		})
	}
	return l
}

// close waits until the listeners have received what is still queued, at most as long as timeout.
func (l *listeners) close(timeout time.Duration) {
	for _, subscription := range l.subscriptions {
		subscription.Close()
	}
	done := make(chan struct{})
	go func() {
		l.all.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(timeout):
	}
}
