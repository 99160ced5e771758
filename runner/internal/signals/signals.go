// Package signals is the only interface through which the engine gets signals from outside: Decisions, results of child
// Runs, whether the operator pauses or stops the Run, and whether the kubelet shuts down the pod.
package signals

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// The causes with which contexts are cancelled. When the Run is stopped, all waits end, because their answers are not
// needed any more.
var (
	ErrInterrupted = task.End(task.ReasonInterrupted, "The runner is asked to end")
	ErrStopped     = errors.New("the Run was asked to stop")
)

// Signals are all signals until now.
type Signals struct {
	// Stopped reports that the Run ends at its next safe point. It stays true.
	Stopped bool
	// Paused reports that nothing new begins; active calls continue to their end.
	Paused bool
	// Interrupted reports that the pod is being shut down: nothing new begins, and active calls may continue until the
	// context ends. It stays true.
	Interrupted bool
	// Decisions are the Decisions that the runner has not acted on, or has not yet reported to the operator, oldest
	// first.
	Decisions []task.Decision
	// Children are the ended child Runs that the runner has not yet reported as recorded.
	Children []task.Child
}

// A Source returns the current Signals.
type Source interface {
	// Current returns the Signals, and a channel that is closed when they change.
	// The lists in them never change.
	Current() (now Signals, changed <-chan struct{})
}

// Latest is a Source with the value of the last Update. The zero value has no signals.
type Latest struct {
	mu      sync.Mutex
	now     Signals
	changed chan struct{}
}

var _ Source = (*Latest)(nil)

// Current implements [Source].
func (l *Latest) Current() (Signals, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.now, l.changed
}

// Update changes the Signals. If they differ, it wakes all waits. It replaces lists and does not change lists that were
// returned before.
func (l *Latest) Update(change func(*Signals)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.now
	change(&next)
	next.Stopped = next.Stopped || l.now.Stopped
	next.Interrupted = next.Interrupted || l.now.Interrupted
	same := next.same(l.now)
	l.now = next
	if !same && l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

func (s Signals) same(other Signals) bool {
	return s.Stopped == other.Stopped && s.Paused == other.Paused && s.Interrupted == other.Interrupted &&
		slices.EqualFunc(s.Decisions, other.Decisions, task.Decision.Equal) && slices.EqualFunc(s.Children, other.Children, sameChild)
}

// sameChild reports whether two results are of the same child Run, which ends once.
func sameChild(a, b task.Child) bool { return a.Request == b.Request && a.Run == b.Run }

// Context returns a context that is cancelled with a cause once the Signals are
// as given.
func Context(ctx context.Context, from Source, when func(Signals) bool, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for {
			now, changed := from.Current()
			if when(now) {
				cancel(cause)
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Stopped and Interrupted are conditions for [Context].
func Stopped(s Signals) bool { return s.Stopped }

// Interrupted reports whether the pod is shut down.
func Interrupted(s Signals) bool { return s.Interrupted }
