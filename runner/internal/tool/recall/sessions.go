package recall

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/mirror"
	"github.com/deckhand-dev/deckhand/runner/internal/wordsearch"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// How much of what was said is looked at, the newest first.
const (
	maxSessions = 500
	maxBytes    = 64 << 20
	maxTime     = 10 * time.Second
)

// errEnough ends a search that has looked at as much as it may.
var errEnough = errors.New("enough")

// sessions finds the sessions that have all the words, and reports whether there
// were too many to look at all.
func (r *recaller) sessions(ctx context.Context, words []string) ([]hit, bool, error) {
	if r.Sessions == nil {
		return nil, false, nil
	}
	q := r.Query
	q.Limit = session.MaxLimit
	if searcher, ok := r.Sessions.(session.Searcher); ok {
		return r.searched(ctx, searcher, q, words)
	}
	s := search{recaller: r, words: words, until: r.Now().Add(maxTime)}
	for {
		rows, err := r.Sessions.List(ctx, q)
		if err != nil {
			return s.hits, false, err
		}
		err = s.through(ctx, rows.Rows)
		if errors.Is(err, errEnough) {
			return s.hits, true, nil
		}
		if err != nil || rows.Next == "" {
			return s.hits, false, err
		}
		q.Cursor = rows.Next
	}
}

// searched returns what a store finds by itself.
func (r *recaller) searched(ctx context.Context, in session.Searcher, q session.Query, words []string) ([]hit, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	matches, err := in.Search(ctx, q, words)
	var hits []hit
	for _, m := range matches {
		if !mirror.IsOfRun(m.Row.ID, r.Self) {
			hits = append(hits, hitOf(m))
		}
	}
	return hits, len(matches) >= q.Limit, err
}

// hitOf returns a match as it is shown.
func hitOf(m session.Match) hit {
	return hit{
		where: fmt.Sprintf("session %s of %s, step %d (%s)", label(m.Row.ID), m.Row.Created.UTC().Format(time.DateOnly), m.Seq, m.Role),
		count: m.Count, at: m.Row.Updated,
		lines: func(context.Context) ([]string, error) {
			lines := strings.SplitN(m.Excerpt, "\n", 2*wordsearch.Around+2)
			lines = lines[:min(len(lines), 2*wordsearch.Around+1)]
			for i, line := range lines {
				lines[i] = plain(line, wordsearch.MaxLine)
			}
			return lines, nil
		},
	}
}

// A search looks into one session after the other.
type search struct {
	*recaller
	words []string
	until time.Time
	seen  int   // sessions
	bytes int64 // of what was said in them
	hits  []hit
}

func (s *search) through(ctx context.Context, rows []session.Row) error {
	for _, row := range rows {
		if mirror.IsOfRun(row.ID, s.Self) {
			continue
		}
		if s.seen++; s.seen > maxSessions || s.Now().After(s.until) {
			return errEnough
		}
		m, found, err := wordsearch.In(row, s.bounded(s.Sessions.Read(ctx, row.ID, 1)), s.words)
		switch {
		case errors.Is(err, session.ErrNotFound): // deleted meanwhile
		case err != nil:
			return err
		case found:
			s.hits = append(s.hits, hitOf(m))
		}
	}
	return nil
}

// bounded yields steps until enough was read in all sessions.
func (s *search) bounded(steps iter.Seq2[step.Step, error]) iter.Seq2[step.Step, error] {
	return func(yield func(step.Step, error) bool) {
		for one, err := range steps {
			if s.bytes += int64(len(one.Text())); err == nil && s.bytes > maxBytes {
				err = errEnough
			}
			if !yield(one, err) {
				return
			}
		}
	}
}
