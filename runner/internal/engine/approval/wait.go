package approval

import (
	"context"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/signals"
)

// A Wait ends as soon as Done is closed, Until returns true, or Late has a value.
type Wait struct {
	Reason WaitReason
	// Until is called first and after each change. An error ends the wait.
	Until func(now signals.Signals) (over bool, err error)
	// Done may be nil. Late may be nil; Expire is called when it has a value.
	Done   <-chan struct{}
	Late   <-chan time.Time
	Expire func()
}

// Wait waits. Meanwhile the status shows what the Run waits for, and the runner leaves if everything waits for long
// enough. The error is the error of Until, or the cause of the end of the context.
func (r *Requests) Wait(ctx context.Context, w Wait) error {
	back := func() {}
	if w.Reason != ForModel { // a [ModelWait] is more than this
		back = r.activity.wait(w.Reason)
	}
	defer func() { back(); r.config.Report() }()
	now, _ := r.config.Signals.Current()
	v := waiter{requests: r, wait: w, settleTimer: time.NewTimer(SettleDelay), suspendTimer: time.NewTimer(SettleDelay), paused: now.Paused}
	defer v.settleTimer.Stop()
	defer v.suspendTimer.Stop()
	if !r.config.Durable {
		v.suspendTimer.Stop()
	}
	r.config.ReportNow()
	for {
		if over, err := v.check(ctx); over || err != nil {
			return err
		}
	}
}

// A waiter is one wait in progress.
type waiter struct {
	requests *Requests
	wait     Wait
	// settleTimer fires when all have waited for SettleDelay, suspendTimer when the runner may be able to leave.
	settleTimer, suspendTimer *time.Timer
	paused                    bool // what the status shows
}

// check reports whether the wait is over. Otherwise it returns after the next change.
func (w *waiter) check(ctx context.Context) (over bool, err error) {
	r := w.requests
	now, changed := r.config.Signals.Current()
	change := r.activity.change() // asked for before Until looks
	if over, err := w.wait.Until(now); over || err != nil {
		return over, err
	}
	if now.Paused != w.paused {
		w.paused = now.Paused
		r.showState()
	}
	select {
	case <-w.wait.Done:
		return true, nil
	case <-w.wait.Late:
		if w.wait.Expire != nil {
			w.wait.Expire()
		}
		return true, nil
	case <-change:
		w.settleTimer.Reset(SettleDelay)
		if r.config.Durable {
			w.suspendTimer.Reset(SettleDelay)
		}
	case <-w.settleTimer.C:
		r.showState()
	case <-w.suspendTimer.C:
		w.suspendTimer.Reset(r.trySuspend(changed))
	case <-changed:
	case <-r.leaving:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	return false, nil
}

// untilDecided applies new Decisions and results of child Runs. It returns why no request is waited for any more, or
// nil.
func (r *Requests) untilDecided(by Session, now signals.Signals) error {
	if _, err := r.ApplyDecisions(by, now.Decisions); err != nil {
		return err
	}
	if err := r.applyChildResults(now.Children); err != nil {
		return err
	}
	if now.Stopped {
		return signals.ErrStopped
	}
	if left := r.Leave(); left != nil {
		return left
	}
	return nil
}

// showState reports what the Run waits for at once if that differs from the last report.
func (r *Requests) showState() {
	if r.State() != r.config.ReportedState() {
		r.config.ReportNow()
	}
}
