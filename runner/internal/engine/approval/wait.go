package approval

import (
	"context"
	"slices"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/task"
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

const (
	// longModelWait is how long a session waits for a model before the runner may leave. If the next try is at least as
	// far away, the runner may leave at once.
	longModelWait = 10 * time.Minute
	// nearModelTry is how close the next try must be for the runner to stay.
	nearModelTry = time.Minute
	// longTry is longer than the requests of one try take if the server does not answer.
	longTry = 3 * time.Minute
)

// A ModelWait is the wait of one session for a model that is unavailable. It begins with
// the first failure and ends with an answer: the tries in between are part of it.
type ModelWait struct {
	requests *Requests

	// The lock of Requests guards the fields below.
	back    func()   // ends the wait in Activity; nil: the session does not wait
	try     ModelTry // the last try that was set
	request *bool    // the current try; nil: there is none
}

// A ModelTry is when a session asks a model again, and why.
type ModelTry struct {
	// Model is the Model that was asked last, Message its error.
	Model, Message string
	// Since is when the first request failed, Next when the model is asked again.
	Since, Next time.Time
	// Promised reports that the provider named the time of Next.
	Promised bool
}

// Show returns the try as the status shows it.
func (t ModelTry) Show() *task.ModelWait {
	w := &task.ModelWait{
		Model: t.Model, Since: t.Since.UTC().Format(time.RFC3339), Promised: t.Promised,
		Message: task.Cut(t.Message, task.MaxWarning),
	}
	if !t.Next.IsZero() {
		w.NextTryAt = t.Next.UTC().Format(time.RFC3339)
	}
	return w
}

// BeginModelWait begins the wait of one session.
func (r *Requests) BeginModelWait(t ModelTry) *ModelWait {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &ModelWait{requests: r, back: r.activity.wait(ForModel), try: t}
	r.models = append(r.models, w)
	return w
}

// Set sets when the model is asked again. The session waits until then.
func (w *ModelWait) Set(t ModelTry) {
	w.requests.mu.Lock()
	defer w.requests.mu.Unlock()
	if w.back == nil { // an answer had begun, and was cut
		w.back = w.requests.activity.wait(ForModel)
	}
	w.try, w.request = t, nil
}

// Ask marks that the model is being asked. If it takes longer than longTry, the model is not unavailable, and from then
// on the session counts as working.
func (w *ModelWait) Ask() {
	w.requests.mu.Lock()
	defer w.requests.mu.Unlock()
	request := new(bool)
	w.request = request
	time.AfterFunc(longTry, func() {
		w.requests.mu.Lock()
		defer w.requests.mu.Unlock()
		if w.request == request {
			w.work()
		}
	})
}

// Answering marks that the answer has begun: from now on the session counts as working.
func (w *ModelWait) Answering() {
	w.requests.mu.Lock()
	defer w.requests.mu.Unlock()
	w.work()
}

func (w *ModelWait) work() {
	if w.back != nil {
		w.back()
		w.back = nil
	}
}

// End ends the wait.
func (w *ModelWait) End() {
	w.requests.mu.Lock()
	defer w.requests.mu.Unlock()
	w.work()
	w.request = nil
	w.requests.models = slices.DeleteFunc(w.requests.models, func(other *ModelWait) bool { return other == w })
}

// ModelWait returns the wait for a model that the status shows, or nil. Of several waits it combines the earliest
// beginning with the next try. A model whose answer has begun is not waited for.
func (r *Requests) ModelWait() *task.ModelWait {
	if d := r.suspended.Load(); d != nil && d.end == errWaiting {
		return d.modelWait
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.modelWait()
}

func (r *Requests) modelWait() *task.ModelWait {
	waiting := slices.DeleteFunc(slices.Clone(r.models), func(w *ModelWait) bool { return w.back == nil })
	if len(waiting) == 0 {
		return nil
	}
	shown := slices.MinFunc(waiting, func(a, b *ModelWait) int { return a.try.Since.Compare(b.try.Since) }).try
	first := slices.MinFunc(waiting, func(a, b *ModelWait) int { return a.try.Next.Compare(b.try.Next) }).try
	shown.Next, shown.Promised = first.Next, first.Promised
	return shown.Show()
}

// untilLong returns how long it takes until the runner may leave each wait for a model.
func (r *Requests) untilLong() time.Duration {
	now, longest := r.config.Now(), time.Duration(0)
	for _, w := range r.models {
		waited, left := now.Sub(w.try.Since), w.try.Next.Sub(now)
		switch {
		case w.request != nil:
			longest = max(longest, SuspendRetry)
		case left > longModelWait:
		case waited < longModelWait:
			longest = max(longest, longModelWait-waited)
		case left < nearModelTry:
			longest = max(longest, left, SettleDelay)
		}
	}
	return longest
}
