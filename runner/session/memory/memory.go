// Package memory is a session store in memory. It is bounded: it refuses what exceeds its bounds.
package memory

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/runner/internal/stepsize"
	"github.com/deckhand-dev/deckhand/runner/internal/wordsearch"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// Options bound a Store. The zero value has the defaults.
type Options struct {
	// Sessions is the maximum number of sessions, Bytes the maximum size of all their steps together.
	Sessions int
	Bytes    int64
	Now      func() time.Time
}

// Default limits of a Store.
const (
	DefaultSessions = 1_000
	DefaultBytes    = 64 << 20
)

// A Store is a session store in memory.
type Store struct {
	opts Options

	mu       sync.RWMutex
	sessions map[string]*kept
	bytes    int64
}

// A kept is a session. Steps are only appended.
type kept struct {
	row   session.Row
	steps []step.Step
	bytes int64
}

var _ session.Searcher = (*Store)(nil)

// New makes an empty store.
func New(o Options) *Store {
	o.Sessions = cmp.Or(o.Sessions, DefaultSessions)
	o.Bytes = cmp.Or(o.Bytes, DefaultBytes)
	o.Now = clock.Or(o.Now)
	return &Store{opts: o, sessions: map[string]*kept{}}
}

// now returns the time with the precision of rows.
func (s *Store) now() time.Time { return s.opts.Now().UTC().Truncate(time.Microsecond) }

// Append implements [session.Store].
func (s *Store) Append(ctx context.Context, row session.Row, after int64, steps ...step.Step) error {
	if err := cmp.Or(ctx.Err(), session.Check(row, after, steps)); err != nil {
		return failed("appending to", row.ID, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k, there := s.sessions[row.ID]
	if !there {
		at := s.now()
		k = &kept{row: session.Row{ID: row.ID, App: row.App, Agent: row.Agent, User: row.User, Created: at}}
	}
	switch {
	case k.row.App != row.App, k.row.Agent != row.Agent, k.row.User != row.User:
		return failed("appending to", row.ID, session.ErrOwner)
	case k.row.Last != after:
		return failed("appending to", row.ID, &session.ConflictError{Session: row.ID, Last: k.row.Last})
	}
	if err := s.admit(k, steps); err != nil {
		return failed("appending to", row.ID, err)
	}
	k.row.Status = cmp.Or(row.Status, k.row.Status)
	k.row.Updated = s.now()
	return nil
}

// admit appends steps to a session if there is room.
func (s *Store) admit(k *kept, steps []step.Step) error {
	var size int64
	for _, one := range steps {
		size += stepsize.Of(one)
	}
	_, there := s.sessions[k.row.ID]
	if s.bytes+size > s.opts.Bytes || !there && len(s.sessions) >= s.opts.Sessions {
		return session.ErrFull
	}
	s.sessions[k.row.ID] = k
	k.steps = append(k.steps, steps...)
	k.row.Last = int64(len(k.steps))
	k.bytes += size
	s.bytes += size
	return nil
}

// failed adds the operation and the session to an error. It wraps the errors of contexts too, so that errors.Is finds
// them.
func failed(doing, id string, err error) error {
	return fmt.Errorf("%s the session %q: %w", doing, id, err)
}

// Read implements [session.Store].
func (s *Store) Read(ctx context.Context, id string, from int64) iter.Seq2[step.Step, error] {
	return func(yield func(step.Step, error) bool) {
		s.mu.RLock()
		k, there := s.sessions[id]
		var steps []step.Step
		if there {
			steps = k.steps[min(max(from-1, 0), k.row.Last):]
		}
		s.mu.RUnlock()
		if !there {
			yield(step.Step{}, failed("reading", id, session.ErrNotFound))
			return
		}
		for one, err := range yielding(ctx, steps) {
			if err != nil {
				yield(step.Step{}, failed("reading", id, err))
				return
			}
			if !yield(one, nil) {
				return
			}
		}
	}
}

// List implements [session.Store].
func (s *Store) List(ctx context.Context, q session.Query) (session.Page, error) {
	if err := ctx.Err(); err != nil {
		return session.Page{}, fmt.Errorf("listing sessions: %w", err)
	}
	var behind session.Row
	if q.Cursor != "" {
		var err error
		if behind, err = session.Behind(q.Cursor); err != nil {
			return session.Page{}, fmt.Errorf("listing sessions: %w", err)
		}
	}
	var rows []session.Row
	s.mu.RLock()
	for _, k := range s.sessions {
		if q.Match(k.row) && (q.Cursor == "" || session.Compare(behind, k.row) < 0) {
			rows = append(rows, k.row)
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(rows, session.Compare)
	page := session.Page{Rows: rows}
	if limit := q.Clamp(); len(rows) > limit {
		page = session.Page{Rows: rows[:limit], Next: session.Cursor(rows[limit-1])}
	}
	return page, nil
}

// Search implements [session.Searcher].
func (s *Store) Search(ctx context.Context, q session.Query, words []string) ([]session.Match, error) {
	var matches []session.Match
	for _, k := range s.selected(q) {
		m, found, err := wordsearch.In(k.row, yielding(ctx, k.steps), words)
		if err != nil {
			return nil, fmt.Errorf("searching sessions: %w", err)
		}
		if found {
			matches = append(matches, m)
		}
	}
	slices.SortFunc(matches, func(a, b session.Match) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Row.Updated.Compare(a.Row.Updated), cmp.Compare(a.Row.ID, b.Row.ID))
	})
	return matches[:min(len(matches), q.Clamp())], ctx.Err()
}

// selected returns the current state of the sessions that a query selects.
func (s *Store) selected(q session.Query) []kept {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var all []kept
	for _, k := range s.sessions {
		if q.Match(k.row) {
			all = append(all, *k)
		}
	}
	return all
}

// yielding yields steps until ctx ends.
func yielding(ctx context.Context, steps []step.Step) iter.Seq2[step.Step, error] {
	return func(yield func(step.Step, error) bool) {
		for _, one := range steps {
			if err := ctx.Err(); !yield(one, err) || err != nil {
				return
			}
		}
	}
}

// Fork implements [session.Store].
func (s *Store) Fork(ctx context.Context, id string, upTo int64, row session.Row) error {
	if err := cmp.Or(ctx.Err(), session.Check(row, 0, nil)); err != nil {
		return failed("forking", id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k, there := s.sessions[id]
	switch {
	case !there:
		return failed("forking", id, session.ErrNotFound)
	case upTo < 0, upTo > k.row.Last:
		return failed("forking", id, fmt.Errorf("%w: there is no step %d; the last is %d", session.ErrInvalid, upTo, k.row.Last))
	}
	if taken, ok := s.sessions[row.ID]; ok {
		return failed("forking", id, &session.ConflictError{Session: row.ID, Last: taken.row.Last})
	}
	at := s.now()
	fork := &kept{row: session.Row{
		ID: row.ID, App: row.App, Agent: row.Agent, User: row.User, Status: row.Status,
		Created: at, Updated: at, Origin: session.Origin{Session: id, Through: upTo},
	}}
	if err := s.admit(fork, k.steps[:upTo]); err != nil {
		return failed("forking", id, err)
	}
	return nil
}

// Delete implements [session.Store].
func (s *Store) Delete(ctx context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, there := s.sessions[id]
	switch {
	case ctx.Err() != nil:
		return failed("deleting", id, ctx.Err())
	case !there:
		return failed("deleting", id, session.ErrNotFound)
	}
	delete(s.sessions, id)
	s.bytes -= k.bytes
	return nil
}
