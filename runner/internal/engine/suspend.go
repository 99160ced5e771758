package engine

import (
	"context"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// defaultHold is for how long everything waits for people or child Runs before
	// the runner leaves.
	defaultHold = 2 * time.Minute
	// lookAgain is how often a runner that could leave looks whether it may.
	lookAgain = 10 * time.Second
)

// Why a runner leaves while the work is to go on.
var (
	errWaiting = task.End(task.ReasonWaiting, "Waiting for a Decision or a child Run; another attempt resumes the work then")
	errPaused  = task.End(task.ReasonPaused, "Paused by spec.desiredState; the work continues from here when it is Running")
)

// A departure is that the runner leaves, for good.
type departure struct {
	end   *task.EndError
	state string // what the status shows of it
}

// leaves says whether an error only says that the runner leaves: what is open
// stays open for whoever takes up the work.
func leaves(err error) bool {
	end, ok := asEnd(err)
	return ok && (end == ErrInterrupted || end == errWaiting || end == errPaused)
}

// departed is why a session ended that is to go on later; nil: it ended.
func departed(r task.Reason) *task.EndError {
	for _, end := range []*task.EndError{ErrInterrupted, errWaiting, errPaused} {
		if end.Reason == r {
			return end
		}
	}
	return nil
}

// leaving is why nothing new may begin, the work being left to the next attempt;
// nil: it goes on.
func (r *run) leaving() *task.EndError {
	if d := r.left.Load(); d != nil {
		return d.end
	}
	switch now := r.signals(); {
	case now.Interrupted:
		return ErrInterrupted
	case r.Durable && now.Paused:
		r.room.mu.Lock()
		defer r.room.mu.Unlock()
		return r.depart(departure{errPaused, statePaused})
	}
	return nil
}

// depart has the runner leave, unless it does already. The room is locked: what
// people decide from now on is for the next attempt to hear.
func (r *run) depart(d departure) *task.EndError {
	if r.left.CompareAndSwap(nil, &d) {
		close(r.gone)
	}
	return r.left.Load().end
}

// withdraw has the runner leave where everything has waited for people or child
// Runs for long enough, no command runs in the background, and nobody has said
// anything new, which closes changed. Else it returns when to look again.
func (r *run) withdraw(changed <-chan struct{}) time.Duration {
	busy := r.Busy != nil && r.Busy()
	r.room.mu.Lock()
	defer r.room.mu.Unlock()
	select {
	case <-changed:
		return lookAgain
	default:
	}
	still, all := r.crew.still()
	switch {
	case !all:
		return r.Hold
	case still < r.Hold:
		return r.Hold - still
	case busy:
		return lookAgain
	}
	_ = r.depart(departure{errWaiting, r.room.state(r.crew.state())})
	return 0
}

// safe is where the runner may leave, and where a Run is held whose runner may
// not. It returns once something new may begin, or why nothing may.
func (s *session) safe(ctx context.Context) error {
	if left := s.leaving(); left != nil {
		return left
	}
	if now := s.signals(); !now.Paused || now.Stopped {
		return nil
	}
	return s.hold(ctx)
}

// hold waits in place while the Run is paused.
func (s *session) hold(ctx context.Context) error {
	s.emit("Paused by spec.desiredState", events.StateChanged{State: statePaused})
	defer func() { s.emit("The work continues", events.StateChanged{State: stateWorking}) }()
	err := s.wait(ctx, wait{errand: forPause, until: func(now signals.Signals) (bool, error) {
		if left := s.leaving(); left != nil {
			return false, left
		}
		return !now.Paused || now.Stopped, nil
	}})
	if err != nil && ctx.Err() != nil && !leaves(err) {
		return failure(ctx) // of a used-up duration what comes next knows
	}
	return err
}

// waitState is what the Run waits for, in the words of the status; empty while some
// of it works.
func (r *run) waitState() string {
	d, state := r.left.Load(), r.crew.state()
	switch {
	case d != nil && (d.end == errWaiting || !r.crew.busy()):
		return d.state
	case state != "" && r.signals().Paused:
		return statePaused
	}
	r.room.mu.Lock()
	defer r.room.mu.Unlock()
	return r.room.state(state)
}

// state is what people are waited for with: what they were asked first decides.
func (m *room) state(waits string) string {
	if waits != stateAnswer && waits != stateApproval {
		return waits
	}
	for _, q := range m.open {
		switch q.Kind {
		case task.PendingDelegation: // nobody is asked
		case task.PendingApproval:
			return stateApproval
		default:
			return stateAnswer
		}
	}
	return waits
}
