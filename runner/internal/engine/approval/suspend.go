package approval

import (
	"errors"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// DefaultHold is how long the whole Run waits before the runner leaves. Waits for models have a limit of their own.
	DefaultHold = 2 * time.Minute
	// SuspendRetry is how often a runner that could leave checks again whether it may.
	SuspendRetry = 10 * time.Second
)

// Reasons why a runner leaves a Run that continues in another attempt.
var (
	errWaiting = task.End(task.ReasonWaiting, "Waiting for a Decision, a child Run or a model; another attempt resumes the work then")
	errPaused  = task.End(task.ReasonPaused, "Paused by spec.desiredState; the work continues from here when it is Running")
)

// A suspension is the reason why the runner leaves while the Run continues in another attempt.
type suspension struct {
	end       *task.EndError
	state     string          // what the status shows of it
	modelWait *task.ModelWait // as state
}

// Leaves reports whether an error ends only this attempt. Open requests and calls stay open for the next one.
func Leaves(err error) bool {
	end, ok := errors.AsType[*task.EndError](err)
	return ok && (end == signals.ErrInterrupted || end == errWaiting || end == errPaused)
}

// EndOf returns the reason why a session ended that another attempt continues; nil if the session itself ended.
func EndOf(r task.Reason) *task.EndError {
	for _, end := range []*task.EndError{signals.ErrInterrupted, errWaiting, errPaused} {
		if end.Reason == r {
			return end
		}
	}
	return nil
}

// Leaving returns why nothing new may begin because the runner leaves, or nil. It changes nothing.
func (r *Requests) Leaving() *task.EndError {
	if d := r.suspended.Load(); d != nil {
		return d.end
	}
	switch now, _ := r.config.Signals.Current(); {
	case now.Interrupted:
		return signals.ErrInterrupted
	case r.config.Durable && now.Paused:
		return errPaused
	}
	return nil
}

// Leave returns why nothing new may begin, as Leaving does. If the Run is paused, the runner leaves from now on, even
// if the pause ends immediately.
func (r *Requests) Leave() *task.EndError {
	left := r.Leaving()
	if left != errPaused {
		return left
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.suspend(suspension{end: errPaused, state: StatePaused})
}

// suspend makes the runner leave, unless it already does. The caller holds the lock: Decisions after this are for the
// next attempt.
func (r *Requests) suspend(d suspension) *task.EndError {
	if r.suspended.CompareAndSwap(nil, &d) {
		close(r.leaving)
	}
	return r.suspended.Load().end
}

// trySuspend makes the runner leave if everything has waited long enough, no wait for a model is short, no command runs
// in the background, and there are no new signals, which close changed. Otherwise it returns when to try again.
func (r *Requests) trySuspend(changed <-chan struct{}) time.Duration {
	busy := r.config.Busy != nil && r.config.Busy()
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-changed:
		return SuspendRetry
	default:
	}
	still, all := r.activity.waitedFor()
	hold := r.config.Hold
	if r.activity.onlyModels() { // no user is about to answer
		hold = SettleDelay
	}
	if !all {
		return r.config.Hold
	}
	if early := max(hold-still, r.untilLong()); early > 0 {
		return early
	}
	if busy {
		return SuspendRetry
	}
	_ = r.suspend(suspension{errWaiting, r.open.state(r.activity.state()), r.modelWait()})
	return 0
}

// State returns what the Run waits for, as the status names it. It is empty while any of it works.
func (r *Requests) State() string {
	d, waits := r.suspended.Load(), r.activity.state()
	switch {
	case d != nil && (d.end == errWaiting || !r.activity.Busy()):
		return d.state
	case waits != "" && r.paused():
		return StatePaused
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open.state(waits)
}

// state returns the state of a Run that waits for users: the oldest request decides which.
func (o *openRequests) state(waits string) string {
	if waits != StateAnswer && waits != StateApproval {
		return waits
	}
	for _, q := range o.all {
		switch q.Kind {
		case task.PendingDelegation: // no user is asked
		case task.PendingApproval:
			return StateApproval
		default:
			return StateAnswer
		}
	}
	return waits
}

func (r *Requests) paused() bool {
	now, _ := r.config.Signals.Current()
	return now.Paused
}
