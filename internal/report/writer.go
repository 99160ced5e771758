package report

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// The cadence of writes that nobody waits for.
const (
	youngInterval  = time.Second      // at most one, while a Run is young
	youngFor       = 10 * time.Second // how long it is young
	normalInterval = 10 * time.Second // at most one later
	firstPause     = 50 * time.Millisecond
	shortPause     = time.Second      // longest, while somebody waits
	longPause      = 10 * time.Second // longest, while nobody does
)

const (
	// maxUnauthorized is how long a token may be refused, and nothing else be said,
	// after it was accepted once. The token of a pod that is gone is refused for
	// ever; an API server that starts may refuse any for a while.
	maxUnauthorized = time.Minute
	// maxFirst is how long the first report may be refused. By then the operator
	// would have recorded the pod, if it were ever to count.
	maxFirst = 5 * time.Minute
)

// Options say where progress is written.
type Options struct {
	Target Target
	Now    func() time.Time
	// Jitter varies a pause, so that a thousand runners do not write at once.
	Jitter func(time.Duration) time.Duration
	// Ended is called once, when nothing more can be written: mostly because
	// another attempt has taken over.
	Ended func(error)
	Log   *slog.Logger
}

// A Writer writes progress in the background: the latest, when it is worth it.
type Writer struct {
	opts   Options
	wake   chan struct{}
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	latest  task.Progress
	version int // of latest; rises with each that differs
	acked   int // the version that was accepted last
	waiters []waiter
	ended   error // set once nothing more will be written
}

// A waiter waits until a version is accepted.
type waiter struct {
	version int
	result  chan error
}

// New starts a Writer; Close stops it.
func New(o Options) *Writer {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Writer{opts: o, wake: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{})}
	go w.loop(ctx)
	return w
}

// Close stops writing, in the middle of a write if need be.
func (w *Writer) Close() {
	w.cancel()
	<-w.done
}

// Report takes over the latest progress. What does not differ from the one
// before is not written. It asks now under its lock, so that of two reports at
// once the later one stands.
func (w *Writer) Report(now func() task.Progress) {
	w.mu.Lock()
	w.put(now())
	w.mu.Unlock()
	w.notify()
}

// Commit writes what now says at once and returns when it, or something later,
// is accepted. It is tried again until then, until the context ends, or until
// another attempt has taken over.
func (w *Writer) Commit(ctx context.Context, now func() task.Progress) error {
	result := make(chan error, 1)
	w.mu.Lock()
	if w.ended != nil {
		defer w.mu.Unlock()
		return w.ended
	}
	w.put(now())
	w.waiters = append(w.waiters, waiter{version: w.version, result: result})
	w.mu.Unlock()
	w.notify()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return fmt.Errorf("reporting progress: %w", context.Cause(ctx))
	}
}

// put makes p the latest. Time that passes is no change.
func (w *Writer) put(p task.Progress) {
	before, after := w.latest, p
	before.Usage.DurationSeconds, after.Usage.DurationSeconds = 0, 0
	before.Usage.Duration, after.Usage.Duration = "", ""
	w.latest = p
	if w.version == 0 || !reflect.DeepEqual(before, after) {
		w.version++
	}
}

func (w *Writer) notify() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// urgent says whether somebody waits for a version that is not accepted yet.
func (w *Writer) urgent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiters) > 0
}

func (w *Writer) changed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.version > w.acked
}

// loop writes whenever there is something to write and its time has come.
func (w *Writer) loop(ctx context.Context) {
	defer close(w.done)
	s := &sender{opts: w.opts, began: w.opts.Now()}
	for ctx.Err() == nil {
		if !w.due(ctx, s) {
			continue
		}
		if err := w.send(ctx, s); err != nil {
			w.end(err)
			return
		}
	}
	w.end(context.Canceled)
}

// due waits for something to write and says whether it is to be written now.
func (w *Writer) due(ctx context.Context, s *sender) bool {
	if w.urgent() {
		return true
	}
	wait := time.Hour
	if w.changed() {
		if wait = s.next.Sub(w.opts.Now()); wait <= 0 {
			return true
		}
	}
	w.sleep(ctx, wait)
	return false
}

// sleep ends early when there is news.
func (w *Writer) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.wake:
	case <-ctx.Done():
	}
}

// send tries until the latest is accepted. An error means that nothing will be
// any more.
func (w *Writer) send(ctx context.Context, s *sender) error {
	for try := 0; ctx.Err() == nil; try++ {
		w.mu.Lock()
		p, version := w.latest, w.version
		w.mu.Unlock()
		pause, err := s.try(ctx, p)
		if err != nil {
			return err
		}
		if pause == 0 {
			w.accept(version)
			return nil
		}
		w.sleepBetween(ctx, try, pause)
	}
	return nil
}

// sleepBetween pauses between two tries, longer each time, for no less than
// the server asks.
func (w *Writer) sleepBetween(ctx context.Context, try int, atLeast time.Duration) {
	longest := longPause
	if w.urgent() {
		longest = shortPause
	}
	pause := min(firstPause<<min(try, 10), longest)
	until := w.opts.Now().Add(max(w.opts.Jitter(pause), atLeast))
	wasUrgent := w.urgent()
	for ctx.Err() == nil {
		left := until.Sub(w.opts.Now())
		// Somebody who begins to wait is not made to wait out a long pause.
		if left <= 0 || !wasUrgent && w.urgent() {
			return
		}
		w.sleep(ctx, left)
	}
}

// accept tells those who waited for this version.
func (w *Writer) accept(version int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked = version
	var still []waiter
	for _, x := range w.waiters {
		if x.version <= version {
			x.result <- nil
		} else {
			still = append(still, x)
		}
	}
	w.waiters = still
}

// end tells all who wait that nothing more will be written.
func (w *Writer) end(err error) {
	w.mu.Lock()
	w.ended = err
	waiters := w.waiters
	w.waiters = nil
	w.mu.Unlock()
	for _, x := range waiters {
		x.result <- err
	}
	if end, ok := asEnd(err); ok && w.opts.Ended != nil {
		w.opts.Ended(end)
	}
}
