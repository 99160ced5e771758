// Package signals is the one port through which the engine learns what others
// want of a Run: what approvers decided, how child Runs ended, and whether the
// operator pauses or stops the Run or the kubelet shuts down the pod.
package signals

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// The causes with which contexts are cancelled. What waits when the Run is stopped
// gives up: an answer that is not needed is not waited for.
var (
	ErrInterrupted = task.End(task.ReasonInterrupted, "The runner is asked to end")
	ErrStopped     = errors.New("the Run was asked to stop")
)

// Signals are all that was said until now.
type Signals struct {
	// Stopped says that the Run ends at its next safe point. It stays true.
	Stopped bool
	// Paused says that nothing new begins; what runs goes on to its end.
	Paused bool
	// Interrupted says that the pod is shut down: nothing new begins, and what runs
	// may go on until the context ends. It stays true.
	Interrupted bool
	// Decisions are those that the operator does not yet know to be acted on, oldest
	// first.
	Decisions []task.Decision
	// Children are the child Runs that ended and are not yet known to be recorded.
	Children []task.Child
}

// A Source tells the current Signals.
type Source interface {
	// Current returns the Signals, and a channel that is closed when they change.
	// The lists in them never change.
	Current() (now Signals, changed <-chan struct{})
}

// Latest is a Source with the value of the last Update. The zero value is ready, and
// nothing was said yet.
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

// Update changes the Signals and wakes who waits, if they are others then. It
// replaces lists and leaves those that were given out as they are.
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

// sameChild reports whether two are about the same child Run, which ends once.
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
