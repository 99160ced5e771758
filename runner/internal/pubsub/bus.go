// Package pubsub delivers values to any number of readers without ever waiting for them. Each reader has a queue of its
// own size. Values that do not fit are dropped for that reader only and counted, so a blocked reader affects neither
// the publisher nor other readers. Do not use it for values that must not be lost.
package pubsub

import (
	"slices"
	"sync"
	"sync/atomic"
)

// A Bus delivers published values to its subscriptions. Its methods may be used by many goroutines at once.
type Bus[T any] struct {
	// mu is held for reading while a value is offered, which takes no time, so a
	// queue is never closed while something is put into it.
	mu            sync.RWMutex
	subscriptions []*Subscription[T]
}

// New returns a Bus without subscribers.
func New[T any]() *Bus[T] { return &Bus[T]{} }

// Publish offers a value to every subscription, and waits for none.
func (b *Bus[T]) Publish(v T) {
	b.mu.RLock()
	defer b.mu.RUnlock() // the keep of a subscriber may panic
	for _, s := range b.subscriptions {
		s.offer(v)
	}
}

// Subscribe opens a queue of size values, at least one. Only values for which filter returns true are queued; nil: all.
// filter is called during Publish: it must be fast and must not use the Bus.
func (b *Bus[T]) Subscribe(size int, filter func(T) bool) *Subscription[T] {
	s := &Subscription[T]{bus: b, filter: filter, queue: make(chan T, max(size, 1))}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subscriptions = append(b.subscriptions, s)
	return s
}

// A Subscription is one reader's queue.
type Subscription[T any] struct {
	bus     *Bus[T]
	filter  func(T) bool
	queue   chan T
	dropped atomic.Int64
}

// C returns the queue. After Close it still has the remaining values and is then closed.
func (s *Subscription[T]) C() <-chan T { return s.queue }

// Dropped returns how many values did not fit into the queue so far.
func (s *Subscription[T]) Dropped() int64 { return s.dropped.Load() }

// Close ends the subscription. It may be called more than once, and while
// values are published.
func (s *Subscription[T]) Close() {
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	i := slices.Index(s.bus.subscriptions, s)
	if i < 0 {
		return
	}
	s.bus.subscriptions = slices.Delete(s.bus.subscriptions, i, i+1)
	close(s.queue)
}

// offer puts a value into the queue, if it is wanted and fits.
func (s *Subscription[T]) offer(v T) {
	if s.filter != nil && !s.filter(v) {
		return
	}
	select {
	case s.queue <- v:
	default:
		s.dropped.Add(1)
	}
}
