package engine

import (
	"context"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A meter counts what the Run uses, on top of what it used before. It never
// falls. Each session has an account of it; what is counted into one is counted
// into all above it, up to the Run's own.
type meter struct {
	clock *clock
	root  *account

	mu sync.Mutex // guards all accounts
}

// newMeter goes on from the higher of what the journal and the task say, with
// what people granted on top of the limits.
func newMeter(c Config, k *clock, b *state.Run) *meter {
	m := &meter{clock: k}
	m.root = &account{meter: m, limits: c.Task.Limits, used: c.Task.Meter.Max(b.Meter)}
	m.root.extend(b.Granted)
	return m
}

// An account is what one session, and those below it, used.
type account struct {
	meter  *meter
	parent *account // nil: the Run's own
	limits task.Limits
	start  time.Duration // of the clock, when it was opened
	used   step.Meter    // its duration is that of the time before start
	taken  int64         // calls that may yet count as ToolCalls
}

// open makes an account below this one.
func (a *account) open(limits task.Limits, before step.Meter) *account {
	return &account{meter: a.meter, parent: a, limits: limits, start: a.meter.clock.alive(), used: before}
}

func (a *account) add(change func(*step.Meter)) {
	a.meter.mu.Lock()
	defer a.meter.mu.Unlock()
	for ; a != nil; a = a.parent {
		change(&a.used)
	}
}

func (a *account) read() step.Meter {
	a.meter.mu.Lock()
	defer a.meter.mu.Unlock()
	return a.at(a.meter.clock.alive())
}

// at is the account when the runner was alive for so long.
func (a *account) at(alive time.Duration) step.Meter {
	used := a.used
	used.DurationSeconds += int64((alive - a.start) / time.Second)
	return used
}

// chain is what the session used and each above it, but for the Run's own.
func (a *account) chain() []step.Meter {
	if a.parent == nil {
		return nil
	}
	a.meter.mu.Lock()
	defer a.meter.mu.Unlock()
	var all []step.Meter
	alive := a.meter.clock.alive()
	for ; a.parent != nil; a = a.parent {
		all = append(all, a.at(alive))
	}
	return all
}

// reached is the first limit that is used up, of the session or of one above
// it; nil when there is none.
func (a *account) reached() *gauge { return a.reachedWith(step.Usage{}) }

// reachedWith is the first limit that is used up once some more usage is counted.
func (a *account) reachedWith(more step.Usage) *gauge {
	a.meter.mu.Lock()
	defer a.meter.mu.Unlock()
	alive := a.meter.clock.alive()
	for ; a != nil; a = a.parent {
		used := a.at(alive)
		used.Usage = used.Usage.Plus(more)
		if g := reached(used, a.limits); g != nil {
			g.run = a.parent == nil
			return g
		}
	}
	return nil
}

// extend raises the limits that there are.
func (a *account) extend(g state.Grant) {
	a.meter.mu.Lock()
	defer a.meter.mu.Unlock()
	for limit, more := range map[*int64]int64{
		&a.limits.Steps: g.Steps, &a.limits.Tokens: g.Tokens, &a.limits.CostMicroUSD: g.CostMicroUSD,
	} {
		if *limit > 0 && more > 0 {
			*limit = max(*limit+more, *limit) // a sum that overflows adds nothing
		}
	}
}

// take reserves a tool call; false when a limit allows no more of them.
func (a *account) take() bool {
	a.meter.mu.Lock()
	defer a.meter.mu.Unlock()
	for b := a; b != nil; b = b.parent {
		if limit := b.limits.ToolCalls; limit > 0 && b.used.ToolCalls+b.taken >= limit {
			return false
		}
	}
	for ; a != nil; a = a.parent {
		a.taken++
	}
	return true
}

// give ends a reservation.
func (a *account) give() {
	a.meter.mu.Lock()
	defer a.meter.mu.Unlock()
	for ; a != nil; a = a.parent {
		a.taken--
	}
}

// deadline ends a context when the duration of the session is used up.
func (a *account) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	limit := a.limits.DurationSeconds
	if limit == 0 {
		return ctx, func() { cancel(nil) }
	}
	used := step.Meter{DurationSeconds: limit}
	end := reached(used, task.Limits{DurationSeconds: limit}).end()
	ring := func() { cancel(end) }
	at := a.start + time.Duration(limit-a.used.DurationSeconds)*time.Second
	if a.meter.clock.alive() >= at {
		ring()
	}
	off := a.meter.clock.at(at, ring)
	return ctx, func() { off(); cancel(nil) }
}

// left is how much of the duration is left to the session; false: as much as
// it likes.
func (a *account) left() (time.Duration, bool) {
	a.meter.mu.Lock()
	defer a.meter.mu.Unlock()
	least, bounded := time.Duration(0), false
	alive := a.meter.clock.alive()
	for ; a != nil; a = a.parent {
		if a.limits.DurationSeconds == 0 {
			continue
		}
		left := time.Duration(a.limits.DurationSeconds-a.at(alive).DurationSeconds) * time.Second
		if !bounded || left < least {
			least, bounded = left, true
		}
	}
	return least, bounded
}
