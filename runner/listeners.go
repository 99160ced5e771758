package runner

import (
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/eventlog"
	"github.com/deckhand-dev/deckhand/runner/internal/pubsub"
	"github.com/deckhand-dev/deckhand/runner/registry"
)

// listenerQueue is how many events may wait for one listener.
const listenerQueue = 1024

// listeners are those that a runner was built with, each with a queue and a goroutine of
// its own.
type listeners struct {
	subscriptions []*pubsub.Subscription[events.Event]
	all           sync.WaitGroup
}

// startListeners calls functions with each event of a feed. One that panics is not called
// again.
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
