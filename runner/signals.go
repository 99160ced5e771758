package runner

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// grace is the terminationGracePeriodSeconds of a runner pod; what runs is
	// cut reserve before its end, which is left to say how far it came.
	grace   = 30 * time.Second
	reserve = 12 * time.Second
	// pollSignals is how often the signals are looked at. The kubelet takes
	// longer to bring them.
	pollSignals = time.Second
)

// interruption is SIGTERM, in two steps: begun, nothing new may begin; the
// context ends when what runs must be cut. A second signal is as good as the
// end of the grace.
func interruption(ctx context.Context) (cut context.Context, begun <-chan struct{}, release func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	cut, cancel := context.WithCancelCause(ctx)
	came := make(chan struct{})
	go func() {
		select {
		case <-signals:
			close(came)
		case <-cut.Done():
			return
		}
		select {
		case <-signals:
		case <-time.After(grace - reserve):
		case <-cut.Done():
		}
		cancel(engine.ErrInterrupted)
	}()
	return cut, came, func() { signal.Stop(signals); cancel(nil) }
}

// while is a context that also ends when something begins.
func while(ctx context.Context, begun <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-begun:
			cancel(engine.ErrInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// operator is what the operator last said through the signals file, and so
// what people decided and how child Runs ended.
type operator struct {
	last string // the file as it was last read
	// decode reads a file. One of a newer operator may say more than is known here.
	decode func([]byte, any) error
	stop   atomic.Bool
	once   sync.Once
	ended  chan struct{} // closed when stop is heard

	mu        sync.Mutex
	paused    bool
	turned    chan struct{} // closed when that changes
	decisions []task.Decision
	children  []task.Child
	said      chan struct{} // closed when a decision or the end of a child comes
}

func newOperator() *operator {
	return &operator{decode: json.Unmarshal, ended: make(chan struct{}), said: make(chan struct{}), turned: make(chan struct{})}
}

// Decisions implements [engine.People].
func (o *operator) Decisions() []task.Decision {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.decisions
}

// Ended implements [engine.Children].
func (o *operator) Ended() []task.Child {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.children
}

// Said implements [engine.People] and [engine.Children].
func (o *operator) Said() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.said
}

// Paused implements [engine.Pauser].
func (o *operator) Paused() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.paused
}

// Changed implements [engine.Pauser].
func (o *operator) Changed() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.turned
}

// pause has the work hold, or go on, as the signals say.
func (o *operator) pause(s task.Signals) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.paused == s.Pause {
		return
	}
	o.paused = s.Pause
	close(o.turned)
	o.turned = make(chan struct{})
}

// tell takes over the decisions and the ends of child Runs that were said. What
// was said stays until the operator knows that it was heard; each list is a new
// one.
func (o *operator) tell(s task.Signals) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.Equal(s.Decisions, o.decisions) && slices.EqualFunc(s.Children, o.children, sameEnd) {
		return
	}
	o.decisions, o.children = s.Decisions, s.Children
	close(o.said)
	o.said = make(chan struct{})
}

// listen keeps reading the signals file until the context ends.
func (o *operator) listen(ctx context.Context, path string, log *slog.Logger) {
	poll := time.NewTicker(pollSignals)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
			o.read(path, log)
		}
	}
}

// read reads the signals file, if it says anything new. A file that cannot be
// read now is read the next time.
func (o *operator) read(path string, log *slog.Logger) {
	data, err := os.ReadFile(path)
	if err != nil || string(data) == o.last {
		return
	}
	o.last = string(data)
	o.hear(data, log)
}

// hear takes in what was said.
func (o *operator) hear(data []byte, log *slog.Logger) {
	if len(data) == 0 {
		return
	}
	var s task.Signals
	if err := o.decode(data, &s); err != nil {
		log.Error("The signals cannot be read", "error", err)
		return
	}
	o.stop.Store(s.Stop)
	if s.Stop {
		o.once.Do(func() { close(o.ended) })
	}
	o.pause(s)
	o.tell(s)
}

// sameEnd says whether two say the same child Run: it ends once.
func sameEnd(a, b task.Child) bool { return a.Request == b.Request && a.Run == b.Run }
