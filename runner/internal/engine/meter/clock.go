package meter

import (
	"sync"
	"time"
)

// A Clock measures how long a runner has worked. It is stopped while all sessions wait
// for a user or a child Run.
type Clock struct {
	now func() time.Time

	mu         sync.Mutex
	began      time.Time
	stoppedFor time.Duration // in total, before stoppedAt
	stoppedAt  time.Time     // zero while it runs
	timers     map[*clockTimer]struct{}
}

// A clockTimer calls fire when the clock reaches a time.
type clockTimer struct {
	at    time.Duration
	fire  func()
	timer *time.Timer
}

// NewClock returns a clock that runs since the runner began; zero: since now.
func NewClock(now func() time.Time, began time.Time) *Clock {
	k := &Clock{now: now, began: began, timers: map[*clockTimer]struct{}{}}
	if k.began.IsZero() {
		k.began = now()
	}
	return k
}

// Elapsed returns the time on the clock. It is never negative, even if the time of the
// machine is set back.
func (k *Clock) Elapsed() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.elapsedLocked()
}

func (k *Clock) elapsedLocked() time.Duration {
	until := k.stoppedAt
	if until.IsZero() {
		until = k.now()
	}
	return max(until.Sub(k.began)-k.stoppedFor, 0)
}

// Stop stops the clock.
func (k *Clock) Stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.stoppedAt.IsZero() {
		return
	}
	k.stoppedAt = k.now()
	for a := range k.timers {
		a.timer.Stop()
	}
}

// Start starts the clock again.
func (k *Clock) Start() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stoppedAt.IsZero() {
		return
	}
	k.stoppedFor += max(k.now().Sub(k.stoppedAt), 0)
	k.stoppedAt = time.Time{}
	for a := range k.timers {
		a.timer.Reset(a.at - k.elapsedLocked())
	}
}

// At calls fire in a goroutine of its own when the clock reaches elapsed, unless stop is
// called before.
func (k *Clock) At(elapsed time.Duration, fire func()) (stop func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a := &clockTimer{at: elapsed, fire: fire}
	a.timer = time.AfterFunc(elapsed-k.elapsedLocked(), fire)
	if !k.stoppedAt.IsZero() {
		a.timer.Stop()
	}
	k.timers[a] = struct{}{}
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		a.timer.Stop()
		delete(k.timers, a)
	}
}
