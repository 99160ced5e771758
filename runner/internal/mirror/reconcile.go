package mirror

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// reconcile reads the state of the store after a conflict. Missing steps are added from the source. Additional steps
// were written before a crash, or by an attempt that was replaced: if they equal the journal's, they count as stored.
// If they differ, they stay, and the session continues in a fork from the last equal step.
func (f *Feed) reconcile(l *line, last int64) error {
	f.mu.Lock()
	from, id, told := l.stored+1, l.row.ID, l.statusStored
	if last < from {
		l.stored = last
	}
	f.mu.Unlock()
	if last < from {
		return nil
	}
	var shared int64
	var kin kinship
	err := f.call(func(ctx context.Context) (err error) {
		shared, kin, err = f.compare(l, f.opts.Store.Read(ctx, id, from), from-1)
		return err
	})
	if err != nil {
		return err
	}
	// The journal may still get the additional steps of the store, unless this is the end.
	if kin == parted || kin == ahead && !told {
		if id, shared, err = f.fork(l, shared); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	l.row.ID = id
	f.has(l, shared)
	return nil
}

// kinship is how the steps of a store relate to those of the journal.
type kinship string

const (
	alike  kinship = "alike"  // it is the same, as far as it goes
	ahead  kinship = "ahead"  // it is the same, and more
	parted kinship = "parted" // it is something else from some step on
)

// compare returns the last step that is equal in the store and in the journal, which both have steps after the step
// shared.
func (f *Feed) compare(l *line, theirs iter.Seq2[step.Step, error], shared int64) (int64, kinship, error) {
	next, stop := iter.Pull2(f.ours(l, shared+1))
	defer stop()
	for their, err := range theirs {
		if err != nil {
			return shared, parted, err
		}
		our, err, ok := next()
		switch {
		case err != nil:
			return shared, parted, err
		case !ok:
			return shared, ahead, nil
		case !same(our, their):
			return shared, parted, nil
		}
		shared = our.Seq
	}
	return shared, alike, nil
}

// same reports whether two steps are equal. A store may round times and format JSON differently.
func same(a, b step.Step) bool {
	if a.Seq != b.Seq || a.Role != b.Role || a.CallID != b.CallID || a.Text() != b.Text() || len(a.Calls) != len(b.Calls) {
		return false
	}
	for i, c := range a.Calls {
		if c.ID != b.Calls[i].ID || c.Name != b.Calls[i].Name {
			return false
		}
	}
	return true
}

// fork makes a fork of a session and returns its ID and its last step. A fork that is there
// already was made by an earlier call whose answer was lost: its ID is random.
func (f *Feed) fork(l *line, upTo int64) (id string, last int64, err error) {
	f.mu.Lock()
	from, row := l.row.ID, l.row
	f.mu.Unlock()
	if l.fork == "" {
		l.fork = strings.Split(from, forkSeparator)[0] + forkSeparator + rand.Text()
	}
	row.ID = l.fork
	err = f.call(func(ctx context.Context) error { return f.opts.Store.Fork(ctx, from, upTo, row) })
	if conflict, ok := errors.AsType[*session.ConflictError](err); ok {
		upTo, err = conflict.Last, nil
	}
	if err != nil {
		return "", 0, err
	}
	l.fork = ""
	return row.ID, upTo, nil
}

// forkSeparator separates, in the ID of a fork, the ID of the original session from the rest.
const forkSeparator = "~"

// IsOfRun reports whether a session in a store is a copy of the session of a Run, of one below
// it, or of a fork of these.
func IsOfRun(id, run string) bool {
	rest, own := strings.CutPrefix(id, run)
	return run != "" && own && (rest == "" || strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, forkSeparator))
}
