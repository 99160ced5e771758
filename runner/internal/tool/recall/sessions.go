package recall

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

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

// sessions finds the sessions that have all the words, and says whether there
// were too many to look at all.
func (r *recaller) sessions(ctx context.Context, words []string) ([]hit, bool, error) {
	if r.Sessions == nil {
		return nil, false, nil
	}
	s := search{recaller: r, words: words, until: r.Now().Add(maxTime)}
	q := r.Query
	q.Limit = session.MaxLimit
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
		if s.Self != "" && (row.ID == s.Self || strings.HasPrefix(row.ID, s.Self+"/")) {
			continue
		}
		if s.seen++; s.seen > maxSessions || s.Now().After(s.until) {
			return errEnough
		}
		if err := s.in(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// in looks into one session. One that is gone meanwhile has nothing.
func (s *search) in(ctx context.Context, row session.Row) error {
	counts := make([]int, len(s.words))
	var best finding
	for one, err := range s.Sessions.Read(ctx, row.ID, 1) {
		switch {
		case errors.Is(err, session.ErrNotFound):
			return nil
		case err != nil:
			return err
		}
		text := one.Text()
		if s.bytes += int64(len(text)); s.bytes > maxBytes {
			return errEnough
		}
		best = best.or(s.count(one, text, counts))
	}
	total := 0
	for _, n := range counts {
		if n == 0 {
			return nil
		}
		total += n
	}
	s.hits = append(s.hits, hit{
		where: fmt.Sprintf("session %s of %s, step %d (%s)", label(row.ID), row.Created.UTC().Format(time.DateOnly), best.seq, best.who),
		count: total, at: row.Updated,
		lines: func(context.Context) ([]string, error) { return best.lines, nil },
	})
	return nil
}

// A finding is a step that has some of the words: those who have more of them
// are shown.
type finding struct {
	words, count int
	seq          int64
	who          string
	lines        []string
}

// or is the better of two findings; of equals, the first.
func (f finding) or(g finding) finding {
	if g.words > f.words || g.words == f.words && g.count > f.count {
		return g
	}
	return f
}

// count counts the words in a step, and adds them to those of its session.
func (s *search) count(one step.Step, text string, counts []int) finding {
	f := finding{seq: one.Seq, who: string(one.Role)}
	lower := strings.ToLower(text)
	rarest, least := "", 0
	for i, word := range s.words {
		n := strings.Count(lower, word)
		counts[i] += n
		f.count += n
		if n == 0 {
			continue
		}
		f.words++
		if least == 0 || n < least {
			rarest, least = word, n
		}
	}
	if f.words > 0 {
		f.lines = nearby(text, rarest)
	}
	return f
}

// nearby are the lines around the first that has a word.
func nearby(text, word string) []string {
	lines := strings.Split(text, "\n")
	at := 0
	for i, line := range lines {
		if strings.Contains(strings.ToLower(line), word) {
			at = i
			break
		}
	}
	var shown []string
	for _, line := range lines[max(at-around, 0):min(at+around+1, len(lines))] {
		shown = append(shown, strings.Clone(plain(about(line, word), maxLine)))
	}
	return shown
}

// about is a line from near the first place where it has a word: where that is
// far from the beginning, what is before it is left out.
func about(line, word string) string {
	i := strings.Index(strings.ToLower(line), word)
	if i < maxLine/2 || i > len(line) { // lower case may be longer
		return line
	}
	return "…" + strings.ToValidUTF8(line[i-maxLine/4:], "")
}
