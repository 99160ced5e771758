// Package mirror copies sessions from the journal of a Run to a store of sessions, in the background, so that a slow or
// unavailable store does not affect the Run. Only the journal is authoritative.
package mirror

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// FeedOptions configure a Feed.
type FeedOptions struct {
	Store session.Store
	// Row is the Run's own session. Sessions below it have its id, a slash and their name as id, and no status.
	Row session.Row
	// Source yields the steps of a session from a number on, from the journal. It provides steps that a crash kept from
	// the store, or that were dropped from memory. Without it such steps are missing in the store, and so are all later
	// steps of their session.
	Source func(session string, from int64) iter.Seq2[step.Step, error]
	// Waiting bounds the steps that wait for the store, in bytes; 0: 8 MiB.
	Waiting int64
	// Timeout bounds one call of the store; 0: 10 s.
	Timeout time.Duration
}

const (
	defaultWaiting = 8 << 20
	defaultTimeout = 10 * time.Second
	maxBackoff     = 30 * time.Second
)

// A Feed copies sessions into a Store in the background. Only Close waits for the store, until its context ends.
type Feed struct {
	opts FeedOptions

	ctx     context.Context // of the background
	cancel  context.CancelFunc
	wake    chan struct{}
	closing chan struct{}
	done    chan struct{}
	once    sync.Once

	mu    sync.Mutex
	lines map[string]*line
	order []*line // as they came
	stats FeedStats
	// waiting is the size of the waiting steps in all lines.
	waiting int64
}

// FeedStats counts the steps and failures of a Feed.
type FeedStats struct {
	// Stored is how many steps reached the store, Missing how many have not.
	Stored, Missing int64
	// Failures is how often the store failed. Err is the error of the last round; nil: it stored everything.
	Failures int64
	Err      error
}

// NewFeed starts to copy the steps that Add adds.
func NewFeed(o FeedOptions) *Feed {
	if o.Waiting == 0 {
		o.Waiting = defaultWaiting
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	f := &Feed{
		opts: o, lines: map[string]*line{},
		wake: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
	}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	go f.run()
	return f
}

// Add brings the next steps of a session; the Run's own has no name. It never
// waits. Steps that were added before are passed over.
func (f *Feed) Add(name string, steps ...step.Step) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, ok := f.lines[name]
	if !ok {
		l = f.newLine(name)
	}
	for _, s := range steps {
		f.enqueue(l, s)
	}
	select {
	case f.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// sum returns the FeedStats until now.
func (f *Feed) sum() FeedStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stats
	for _, l := range f.order {
		s.Missing += l.end - l.stored
	}
	return s
}

// Close waits until the store has all steps and the status of the Run, or the context ends. The result counts missing
// steps.
func (f *Feed) Close(ctx context.Context, status string) FeedStats {
	f.once.Do(func() {
		f.mu.Lock()
		f.opts.Row.Status = status
		if own, ok := f.lines[""]; ok {
			own.row.Status, own.statusStored = status, false
		}
		f.mu.Unlock()
		close(f.closing)
	})
	select {
	case <-f.done:
	case <-ctx.Done():
	}
	f.cancel()
	return f.sum()
}

// run copies until all is copied and the Feed is closed, or its time is up.
func (f *Feed) run() {
	defer close(f.done)
	for failures := 0; f.ctx.Err() == nil; {
		closing := f.rest(failures)
		err := f.copyAll()
		f.note(err)
		switch {
		case err != nil:
			failures++
		case closing:
			return
		default:
			failures = 0
		}
	}
}

// rest waits until there is work, or until the next try after failures. It reports whether the Feed is being closed.
func (f *Feed) rest(failures int) (closing bool) {
	var retry <-chan time.Time
	work := f.wake
	if failures > 0 {
		timer := time.NewTimer(min(time.Second<<min(failures-1, 10), maxBackoff))
		defer timer.Stop()
		retry, work = timer.C, nil
	}
	closed := f.closing
	if f.isClosing() && failures > 0 { // no reason to hurry a second time
		closed = nil
	}
	select {
	case <-work:
	case <-retry:
	case <-closed:
	case <-f.ctx.Done():
	}
	return f.isClosing()
}

func (f *Feed) isClosing() bool {
	select {
	case <-f.closing:
		return true
	default:
		return false
	}
}

// note records the error of a round; nil: it succeeded.
func (f *Feed) note(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.Err = err
	if err != nil {
		f.stats.Failures++
	}
}
