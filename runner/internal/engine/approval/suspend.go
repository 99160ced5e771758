package approval

import (
	"errors"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// DefaultHold is for how long everything waits before the runner leaves, unless all of
	// it waits for models.
	DefaultHold = 2 * time.Minute
	// SuspendRetry is how often a runner that could leave looks whether it may.
	SuspendRetry = 10 * time.Second
)

// Why a runner leaves while the work is to go on.
var (
	errWaiting = task.End(task.ReasonWaiting, "Waiting for a Decision, a child Run or a model; another attempt resumes the work then")
	errPaused  = task.End(task.ReasonPaused, "Paused by spec.desiredState; the work continues from here when it is Running")
)

// A suspension says why the runner ends while the work continues in another attempt.
type suspension struct {
	end       *task.EndError
	state     string          // what the status shows of it
	modelWait *task.ModelWait // as state
}

// Leaves says whether an error only says that the runner leaves: what is open
// stays open for the next attempt.
func Leaves(err error) bool {
	end, ok := errors.AsType[*task.EndError](err)
	return ok && (end == signals.ErrInterrupted || end == errWaiting || end == errPaused)
}

// EndOf is why a session ended that is to go on later; nil: it ended.
func EndOf(r task.Reason) *task.EndError {
	for _, end := range []*task.EndError{signals.ErrInterrupted, errWaiting, errPaused} {
		if end.Reason == r {
			return end
		}
	}
	return nil
}

// Leaving returns why nothing new may begin and the work is left to the next attempt; nil: new work
// may begin. It changes nothing.
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

// Leave returns why nothing new may begin, as Leaving does. If the Run is paused, the runner leaves
// from then on, also if the pause ends at once.
func (r *Requests) Leave() *task.EndError {
	left := r.Leaving()
	if left != errPaused {
		return left
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.suspend(suspension{end: errPaused, state: StatePaused})
}

// suspend has the runner leave, unless it does already. The lock is held: what
// people decide from now on is for the next attempt to hear.
func (r *Requests) suspend(d suspension) *task.EndError {
	if r.suspended.CompareAndSwap(nil, &d) {
		close(r.leaving)
	}
	return r.suspended.Load().end
}

// trySuspend has the runner leave where everything has waited for long enough, each model
// is waited for at length, no command runs in the background, and no signal is new, which
// closes changed. Else it returns when to look again.
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

// State is what the Run waits for, in the words of the status; empty while some
// of it works.
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

// state is what people are waited for with: what they were asked first decides.
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
