package engine

import (
	"context"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/signals"
)

// A wait is what one branch of the work waits for: that done is closed, that
// until says so, or that late rings, whichever is first.
type wait struct {
	errand errand
	// until is asked at first and whenever something has changed. An error ends the
	// wait.
	until func(now signals.Signals) (over bool, err error)
	// done may be nil, and late, on which expire is called.
	done   <-chan struct{}
	late   <-chan time.Time
	expire func()
}

// wait waits. Meanwhile the status shows what the Run waits for, and the runner
// leaves where everything waits for long enough. An error is that of until, or why
// the context ended.
func (r *run) wait(ctx context.Context, w wait) error {
	back := r.crew.wait(w.errand)
	defer func() { back(); r.Report.Report(r.progress) }()
	v := waiter{run: r, wait: w, settled: time.NewTimer(steady), away: time.NewTimer(r.Hold), paused: r.signals().Paused}
	defer v.settled.Stop()
	defer v.away.Stop()
	if !r.Durable {
		v.away.Stop()
	}
	r.tellNow()
	for {
		if over, err := v.look(ctx); over || err != nil {
			return err
		}
	}
}

// A waiter is a wait under way.
type waiter struct {
	run  *run
	wait wait
	// settled rings when all have waited for a moment, away when the runner might
	// leave.
	settled, away *time.Timer
	paused        bool // what the status shows
}

// look says whether the wait is over, or returns once that may have changed.
func (v *waiter) look(ctx context.Context) (over bool, err error) {
	now, changed := v.run.Signals.Current()
	change := v.run.crew.change() // asked for before until looks
	if over, err := v.wait.until(now); over || err != nil {
		return over, err
	}
	if now.Paused != v.paused {
		v.paused = now.Paused
		v.run.showState()
	}
	select {
	case <-v.wait.done:
		return true, nil
	case <-v.wait.late:
		if v.wait.expire != nil {
			v.wait.expire()
		}
		return true, nil
	case <-change:
		v.settled.Reset(steady)
		if v.run.Durable {
			v.away.Reset(v.run.Hold)
		}
	case <-v.settled.C:
		v.run.showState()
	case <-v.away.C:
		v.away.Reset(v.run.withdraw(changed))
	case <-changed:
	case <-v.run.gone:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	return false, nil
}

// listenTo acts on what approvers decided and on how child Runs ended, and
// returns why a request is not waited for any more.
func (s *session) listenTo(now signals.Signals) error {
	if _, err := s.hear(s, now.Decisions); err != nil {
		return err
	}
	if err := s.heed(now.Children); err != nil {
		return err
	}
	if now.Stopped {
		return errStopped
	}
	if left := s.leaving(); left != nil {
		return left
	}
	return nil
}
