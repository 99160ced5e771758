package runner

import (
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/pubsub"
	"github.com/deckhand-dev/deckhand/runner/registry"
)

// heard is how many events may wait for one listener.
const heard = 1024

// An audience are the listeners that a runner was built with, each with a queue
// and a goroutine of its own.
type audience struct {
	seats []*pubsub.Subscription[events.Event]
	all   sync.WaitGroup
}

// listen has listeners told of what a feed carries. One that panics hears no
// more.
func listen(feed *events.Feed, listeners []registry.Listener) *audience {
	a := &audience{}
	for _, tell := range listeners {
		seat := feed.Subscribe(heard, nil)
		a.seats = append(a.seats, seat)
		a.all.Go(func() {
			defer seat.Close()
			defer func() { _ = recover() }()
			for h := range seat.C() {
				tell(h)
			}
		})
	}
	return a
}

// close lets the listeners hear what is still queued, for a while.
func (a *audience) close(patience time.Duration) {
	for _, seat := range a.seats {
		seat.Close()
	}
	gone := make(chan struct{})
	go func() {
		a.all.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(patience):
	}
}
