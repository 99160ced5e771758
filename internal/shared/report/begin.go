package report

import (
	"context"

	"github.com/deckhand-dev/deckhand/runner/task"
)

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
