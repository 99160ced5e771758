package attempt

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// grace is the terminationGracePeriodSeconds of a runner pod. Active calls are cancelled reserve before
	// its end, which leaves time to report the progress.
	grace   = 30 * time.Second
	reserve = 12 * time.Second
	// pollSignals is the interval at which the file of the signals is checked. The kubelet takes longer to update it.
	pollSignals = time.Second
)

// interruption handles SIGTERM in two steps: with the signal Interrupted nothing new begins; the context ends when
// active calls must be cancelled. A second SIGTERM does that immediately.
func interruption(ctx context.Context, latest *signals.Latest) (cut context.Context, release func()) {
	caught := make(chan os.Signal, 2)
	signal.Notify(caught, syscall.SIGTERM, syscall.SIGINT)
	cut, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-caught:
			latest.Update(func(s *signals.Signals) { s.Interrupted = true })
		case <-cut.Done():
			return
		}
		select {
		case <-caught:
		case <-time.After(grace - reserve):
		case <-cut.Done():
		}
		cancel(signals.ErrInterrupted)
	}()
	return cut, func() { signal.Stop(caught); cancel(nil) }
}

// untilInterrupted returns a context that also ends when the pod is shut down.
func untilInterrupted(ctx context.Context, from signals.Source) (context.Context, context.CancelFunc) {
	return signals.Context(ctx, from, signals.Interrupted, signals.ErrInterrupted)
}

// A signalsReader reads the file with the operator's signals: Decisions, results of child Runs, and whether the Run is
// paused or stopped.
type signalsReader struct {
	path   string
	latest *signals.Latest
	log    *slog.Logger
	// decode decodes a file. A newer operator may write unknown fields.
	decode func([]byte, any) error
	last   string // the file as it was last read
}

// poll keeps reading the file until the context ends.
func (r *signalsReader) poll(ctx context.Context) {
	poll := time.NewTicker(pollSignals)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
			r.read()
		}
	}
}

// read reads the file if it has changed. If it cannot be read, the next call tries again.
func (r *signalsReader) read() {
	data, err := os.ReadFile(r.path)
	if err != nil || string(data) == r.last {
		return
	}
	r.last = string(data)
	r.apply(data)
}

// apply updates the signals with the content of the file. Decisions and results of child Runs stay in it until the
// operator knows that the runner acted on them.
func (r *signalsReader) apply(data []byte) {
	if len(data) == 0 {
		return
	}
	var said task.Signals
	if err := r.decode(data, &said); err != nil {
		r.log.Error("The signals cannot be read", "error", err)
		return
	}
	r.latest.Update(func(s *signals.Signals) {
		s.Stopped, s.Paused, s.Decisions, s.Children = said.Stop, said.Pause, said.Decisions, said.Children
	})
}
