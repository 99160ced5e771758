// Package report writes status.progress of a Run, and the termination message of
// the runner, from which the operator reads a result that was not written.
//
// A Writer uses net/http, because it sends only one kind of request and a client
// library would triple the size of the runner. Each write is a JSON Patch of the
// whole subtree, with a test that the Run still has this pod as its attempt:
//
//	[{"op":"test","path":"/status/attempt/podUID","value":"…"},
//	 {"op":"add","path":"/status/progress","value":{…}}]
//
// Before the runner begins, a patch with the same test and a wrong resource version
// asks whether the operator has recorded the pod. The API server evaluates the tests
// first, so HTTP 409 says that they hold.
//
// The runner of a first attempt (Options.First) begins without asking, because the operator
// records that attempt later. Its reports test that the Run has no attempt yet, and after a
// refusal that it is this pod. A second after the start one of them must have been accepted before
// the next model call, and before each effect in any case.
//
// Until the first request is accepted, every refusal is transient: the operator may
// not have recorded the pod or granted the permission yet. After that, the same
// refusals mean that another attempt has replaced this one.
package report

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// Intervals and pauses of writes.
const (
	youngInterval  = time.Second      // at most one, while a Run is young
	youngFor       = 10 * time.Second // how long it is young
	normalInterval = 10 * time.Second // at most one later
	firstPause     = 50 * time.Millisecond
	shortPause     = time.Second      // longest, while a Commit waits
	longPause      = 10 * time.Second // longest, while none waits
)

const (
	// maxUnauthorized is how long all responses may be 401 after a request was accepted. The token of a deleted pod
	// stays invalid, but an API server that is starting may refuse every token for a while.
	maxUnauthorized = time.Minute
	// maxFirst is how long the first request may be refused. By then the operator has recorded the pod, if it belongs
	// to an attempt.
	maxFirst = 5 * time.Minute
)

// Options configure a Writer.
type Options struct {
	Target Target
	// First: this is the first attempt of a Run without a volume, which the operator may record
	// later than its pod.
	First bool
	Now   func() time.Time
	// Jitter varies an interval, so that a thousand runners do not write at once.
	Jitter func(time.Duration) time.Duration
	// Ended is called once, when no more reports can be written: usually because
	// another attempt has replaced this one.
	Ended func(error)
	Log   *slog.Logger
}

// A Writer writes the latest progress in the background, at a bounded rate.
type Writer struct {
	opts   Options
	wake   chan struct{}
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	latest  task.Progress
	version int // of latest; incremented when it changes
	acked   int // the last version that was accepted
	waiters []waiter
	begun   time.Time // when Begin was first called
	known   bool      // a check or a report was accepted
	ended   error     // set when no more reports will be written
}

// A waiter is a Commit that waits until a version is accepted, or, with version 0, a Begin.
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

// Close stops the Writer and cancels a write in progress.
func (w *Writer) Close() {
	w.cancel()
	<-w.done
}

// Report sets the latest progress. It is written if it differs from the one before.
// now is called under the lock, so that of two concurrent reports the later one
// is kept.
func (w *Writer) Report(now func() task.Progress) {
	w.mu.Lock()
	w.put(now())
	w.mu.Unlock()
	w.notify()
}

// Commit writes progress without delay and returns when it, or a later version, is
// accepted. It retries until then, until the context ends, or until another
// attempt has replaced this one.
func (w *Writer) Commit(ctx context.Context, now func() task.Progress) error {
	return w.await(ctx, func() int {
		w.put(now())
		return w.version
	})
}

// await returns when the version that put returns, or a later one, is accepted. put is called
// under the lock.
func (w *Writer) await(ctx context.Context, put func() int) error {
	result := make(chan error, 1)
	w.mu.Lock()
	if w.ended != nil {
		defer w.mu.Unlock()
		return w.ended
	}
	w.waiters = append(w.waiters, waiter{version: put(), result: result})
	w.mu.Unlock()
	w.notify()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return fmt.Errorf("reporting progress: %w", context.Cause(ctx))
	}
}

// put sets the latest progress. A longer duration alone does not count as a change.
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

// urgent reports whether a Commit or Begin waits.
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

// loop writes until the Writer is closed or an error is final.
func (w *Writer) loop(ctx context.Context) {
	defer close(w.done)
	s := &sender{opts: w.opts, began: w.opts.Now(), recorded: !w.opts.First}
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

// due reports whether to write now; if not, it has waited for a change or the next
// interval.
func (w *Writer) due(ctx context.Context, s *sender) bool {
	if w.urgent() {
		return true
	}
	wait := time.Hour
	if w.changed() {
		if wait = w.notBefore(s).Sub(w.opts.Now()); wait <= 0 {
			return true
		}
	}
	w.sleep(ctx, wait)
	return false
}

// notBefore returns the earliest time for a report that nothing waits for.
func (w *Writer) notBefore(s *sender) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if first := w.begun.Add(youngInterval); !w.begun.IsZero() && first.After(s.next) {
		return first
	}
	return s.next
}

// sleep waits, and ends early after a notification.
func (w *Writer) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.wake:
	case <-ctx.Done():
	}
}

// send retries until the latest version is accepted, or, if only a Begin waits, until the pod is
// recorded. An error is final.
func (w *Writer) send(ctx context.Context, s *sender) error {
	for try := 0; ctx.Err() == nil; try++ {
		version, pause, err := w.sendOnce(ctx, s)
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

// sendOnce returns the version that it sent, 0 for a check, and the pause before the next try.
func (w *Writer) sendOnce(ctx context.Context, s *sender) (version int, pause time.Duration, err error) {
	w.mu.Lock()
	p, version := w.latest, w.version
	commits := func(x waiter) bool { return x.version > 0 }
	onlyBegin := len(w.waiters) > 0 && !slices.ContainsFunc(w.waiters, commits)
	w.mu.Unlock()
	if onlyBegin && !w.opts.First {
		pause, err = s.check(ctx, p.Attempt)
		return 0, pause, err
	}
	pause, err = s.try(ctx, p)
	return version, pause, err
}

// sleepBetween waits between two attempts with exponential backoff, and at least as
// long as the server requires.
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
		// A new Commit ends a long pause.
		if left <= 0 || !wasUrgent && w.urgent() {
			return
		}
		w.sleep(ctx, left)
	}
}

// accept releases the waiters of this version.
func (w *Writer) accept(version int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acked, w.known = max(w.acked, version), true
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

// end releases all waiters with a final error.
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

// Begin returns when the runner may begin, or continue: when the operator has recorded this pod
// as the current attempt. It is called before each turn, until Accepted. The first call sets the
// first progress, which is written after youngInterval unless more is reported earlier: a short
// Run writes only its result. It fails as Commit does.
//
// The first attempt begins at once. If its first report has not been accepted after
// youngInterval, Begin waits for that.
func (w *Writer) Begin(ctx context.Context, now func() task.Progress) error {
	if w.beginAtOnce(now) {
		w.notify()
		return nil
	}
	return w.await(ctx, func() int {
		w.putFirst(now)
		return 0
	})
}

// beginAtOnce reports whether the runner need not wait for an answer of the API server.
func (w *Writer) beginAtOnce(now func() task.Progress) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun.IsZero() {
		w.begun = w.opts.Now()
	}
	if w.ended != nil {
		return false
	}
	if w.opts.First && w.opts.Now().Sub(w.begun) < youngInterval {
		w.putFirst(now)
		return true
	}
	return w.known
}

// putFirst sets the first progress.
func (w *Writer) putFirst(now func() task.Progress) {
	if w.version == 0 {
		w.put(now())
	}
}

// Accepted reports whether the API server has accepted a request, so that Begin returns at once.
func (w *Writer) Accepted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known && w.ended == nil
}

// Terminate writes the termination message of a runner.
func Terminate(path string, last task.Termination) error {
	// The kubelet creates the file; without a kubelet there is none.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return fmt.Errorf("opening the termination message: %w", err)
	}
	if _, err := f.Write(last.Encode()); err != nil {
		return fmt.Errorf("writing the termination message: %w", err)
	}
	return f.Close()
}
