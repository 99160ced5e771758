package mirror

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/internal/stepsize"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A line is one session on its way to the store.
type line struct {
	name string
	row  session.Row
	// stored is the last step that the store has, as far as is known; end is the last step that was added.
	stored, end int64
	// statusStored reports that the store has the status.
	statusStored bool
	// fork is the ID of a fork that is being made; empty: none. Only the goroutine that copies uses it.
	fork string
	// queue is the last steps that were added, as many as wait in memory.
	queue []step.Step
}

// newLine begins a session. It is called with the lock.
func (f *Feed) newLine(name string) *line {
	l := &line{name: name, row: f.opts.Row, statusStored: true}
	if name != "" {
		l.row.ID += "/" + name
		l.row.Status = ""
	}
	f.lines[name] = l
	f.order = append(f.order, l)
	return l
}

// enqueue adds a step to the queue of its session. If a step before it is missing, or the steps in memory exceed their
// bound, it drops the queue: dropped steps are read from the source later. The caller holds the lock.
func (f *Feed) enqueue(l *line, s step.Step) {
	if s.Seq <= l.end {
		return
	}
	if l.end == 0 {
		l.stored = s.Seq - 1 // the store will say if it has not
	}
	if s.Scope.Agent != "" && l.end == 0 && l.name != "" {
		l.row.Agent = s.Scope.Agent
	}
	size := stepsize.Of(s)
	if s.Seq != l.end+1 || f.waiting+size > f.opts.Waiting {
		f.drop(l, len(l.queue))
	}
	l.end = s.Seq
	if f.waiting+size <= f.opts.Waiting {
		l.queue = append(l.queue, s)
		f.waiting += size
	}
}

// drop takes the first n steps off a queue. It is called with the lock.
func (f *Feed) drop(l *line, n int) {
	for _, s := range l.queue[:n] {
		f.waiting -= stepsize.Of(s)
	}
	l.queue = slices.Delete(l.queue, 0, n)
}

// copyAll brings every session up to date, as far as the store lets it.
func (f *Feed) copyAll() error {
	f.mu.Lock()
	lines := slices.Clone(f.order)
	f.mu.Unlock()
	var errs []error
	for _, l := range lines {
		if err := f.copyLine(l); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// maxConflicts is how often one round reads the state of a store. If it conflicts each time, the store is broken.
const maxConflicts = 3

func (f *Feed) copyLine(l *line) error {
	for conflicts := 0; ; {
		b, err := f.batch(l)
		if err != nil || b.row.ID == "" {
			return err
		}
		err = f.call(func(ctx context.Context) error { return f.opts.Store.Append(ctx, b.row, b.after, b.steps...) })
		conflict, ok := errors.AsType[*session.ConflictError](err)
		switch {
		case err == nil:
			f.advance(l, b)
			continue
		case !ok:
			return err
		}
		if conflicts++; conflicts > maxConflicts {
			return err
		}
		if err := f.reconcile(l, conflict.Last); err != nil {
			return err
		}
	}
}

// call makes one call of the store.
func (f *Feed) call(do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(f.ctx, f.opts.Timeout)
	defer cancel()
	return do(ctx)
}

// maxBatch is about how many bytes one Append has.
const maxBatch = 1 << 20

// A batch is the content of one Append: the steps after a number, and the row.
type batch struct {
	row   session.Row
	after int64
	steps []step.Step
	bytes int64
}

// add adds a step, which must be the next.
func (b *batch) add(s step.Step) error {
	if want := b.after + int64(len(b.steps)) + 1; s.Seq != want {
		return fmt.Errorf("copying the session %q: step %d where %d is due", b.row.ID, s.Seq, want)
	}
	b.steps = append(b.steps, s)
	b.bytes += stepsize.Of(s)
	return nil
}

// full reports whether a batch takes no more.
func (b *batch) full() bool { return len(b.steps) == session.MaxSteps || b.bytes > maxBatch }

// batch returns the next steps that the store lacks; without a row if it lacks nothing.
func (f *Feed) batch(l *line) (batch, error) {
	f.mu.Lock()
	b := batch{row: l.row, after: l.stored}
	all := b.after >= l.end
	if all && l.statusStored {
		b.row = session.Row{}
	}
	f.mu.Unlock()
	if all {
		return b, nil
	}
	for s, err := range f.ours(l, b.after+1) {
		if err == nil {
			err = b.add(s)
		}
		if err != nil {
			return b, err
		}
		if b.full() {
			break
		}
	}
	if len(b.steps) == 0 {
		return b, fmt.Errorf("copying the session %q: the journal has no step %d", b.row.ID, b.after+1)
	}
	return b, nil
}

// advance records that a batch reached the store.
func (f *Feed) advance(l *line, b batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.Stored += int64(len(b.steps))
	l.statusStored = l.statusStored || b.row.Status == l.row.Status
	f.has(l, b.after+int64(len(b.steps)))
}

// has sets the last step that the store has of a session. The caller holds the lock.
func (f *Feed) has(l *line, last int64) {
	l.stored = last
	n := 0
	for n < len(l.queue) && l.queue[n].Seq <= last {
		n++
	}
	f.drop(l, n)
}

// ours yields the steps of a session from a number on: waiting ones, or those of the source.
func (f *Feed) ours(l *line, from int64) iter.Seq2[step.Step, error] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if from > l.end {
		return func(func(step.Step, error) bool) {}
	}
	if len(l.queue) > 0 && l.queue[0].Seq <= from {
		return waiting(slices.Clone(l.queue[from-l.queue[0].Seq:]))
	}
	if f.opts.Source == nil {
		return func(yield func(step.Step, error) bool) {
			yield(step.Step{}, fmt.Errorf("copying the session %q: step %d is no longer there", l.row.ID, from))
		}
	}
	return upTo(f.opts.Source(l.name, from), l.end)
}

func waiting(steps []step.Step) iter.Seq2[step.Step, error] {
	return func(yield func(step.Step, error) bool) {
		for _, s := range steps {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// upTo yields steps up to the one with a number.
func upTo(steps iter.Seq2[step.Step, error], end int64) iter.Seq2[step.Step, error] {
	return func(yield func(step.Step, error) bool) {
		for s, err := range steps {
			if err == nil && s.Seq > end || !yield(s, err) || err != nil {
				return
			}
		}
	}
}
