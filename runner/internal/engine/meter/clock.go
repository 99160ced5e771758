package meter

import (
	"sync"
	"time"
)

// A Clock tells how long a runner was alive. It stands still while every branch
// of the work waits for a person or a child Run.
type Clock struct {
	now func() time.Time

	mu         sync.Mutex
	began      time.Time
	stoppedFor time.Duration // for which it stood still
	stoppedAt  time.Time     // since when it stands still; zero: it runs
	alarms     map[*alarm]struct{}
}

// An alarm rings once the runner was alive for so long.
type alarm struct {
	at    time.Duration
	ring  func()
	timer *time.Timer
}

// NewClock returns a clock that runs since the runner began; zero: since now.
func NewClock(now func() time.Time, began time.Time) *Clock {
	k := &Clock{now: now, began: began, alarms: map[*alarm]struct{}{}}
	if k.began.IsZero() {
		k.began = now()
	}
	return k
}

// Alive is how long the runner was. A clock that was set back does not lower it
// below zero.
func (k *Clock) Alive() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.reading()
}

func (k *Clock) reading() time.Duration {
	until := k.stoppedAt
	if until.IsZero() {
		until = k.now()
	}
	return max(until.Sub(k.began)-k.stoppedFor, 0)
}

// Stop makes the clock stand still.
func (k *Clock) Stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.stoppedAt.IsZero() {
		return
	}
	k.stoppedAt = k.now()
	for a := range k.alarms {
		a.timer.Stop()
	}
}

// Start makes it go on.
func (k *Clock) Start() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stoppedAt.IsZero() {
		return
	}
	k.stoppedFor += max(k.now().Sub(k.stoppedAt), 0)
	k.stoppedAt = time.Time{}
	for a := range k.alarms {
		a.timer.Reset(a.at - k.reading())
	}
}

// At rings once the runner was alive for so long, unless it is called off.
func (k *Clock) At(alive time.Duration, ring func()) (off func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a := &alarm{at: alive, ring: ring}
	a.timer = time.AfterFunc(alive-k.reading(), ring)
	if !k.stoppedAt.IsZero() {
		a.timer.Stop()
	}
	k.alarms[a] = struct{}{}
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		a.timer.Stop()
		delete(k.alarms, a)
	}
}
