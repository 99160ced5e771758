// Package recall is the tool that searches the memory of an agent: the files that it keeps, and the texts of earlier
// sessions. It finds files and sessions that contain all words, in any case of letters. Those with more occurrences
// come first, and among equals the newer. How much is searched and shown is bounded.
package recall

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/mirror"
	"github.com/deckhand-dev/deckhand/runner/internal/wordsearch"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// Name is the name of the tool.
const Name = "Recall"

//go:embed recall.md
var page string

// The bounds of a search.
const (
	defaultLimit = 10
	maxLimit     = 50
	maxWords     = 16
	maxQuery     = 1_000  // bytes
	maxText      = 40_000 // bytes of an answer
)

// Options say where to search. A nil field is not searched.
type Options struct {
	// Files are the files that the agent keeps, which the model sees below Place ("/memories").
	Files *backend.Backend
	Dir   string
	// Sessions are searched as far as Query selects them; Query has their owner.
	Sessions session.Store
	Query    session.Query
	// Self is the id of the Run's own session. It and the sessions below it are left out, because the model knows them.
	Self string
	// Now measures how long a search takes.
	Now func() time.Time
}

type in struct {
	Query string `json:"query" jsonschema:"the words to look for"`
	Limit int    `json:"limit,omitempty" jsonschema:"most results to show; default 10, at most 50"`
}

// New makes the tool.
func New(o Options) tool.Tool {
	o.Now = clock.Or(o.Now)
	r := &recaller{o}
	spec := tool.Spec{
		Name: Name, Description: strings.TrimSpace(page),
		Effect: tool.ReadOnly, Concurrency: tool.Parallel,
	}
	return tool.Typed(spec, func(ctx context.Context, _ tool.Call, i in) (tool.Result, error) {
		words := wordsOf(i.Query)
		switch {
		case len(i.Query) > maxQuery, len(words) > maxWords:
			return tool.Fail(fmt.Sprintf("The query is too long: it may have %d different words and %d bytes", maxWords, maxQuery),
				"Look for the few words that what you want surely has."), nil
		case len(words) == 0:
			return tool.Fail("The query has no words", "Say what to look for."), nil
		}
		limit := cmp.Or(max(i.Limit, 0), defaultLimit)
		return r.recall(ctx, words, min(limit, maxLimit))
	})
}

// wordsOf returns the distinct words of a query, in lower case.
func wordsOf(query string) []string {
	var words []string
	for w := range strings.FieldsSeq(strings.ToLower(query)) {
		if !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return words
}

type recaller struct{ Options }

// A hit is one result.
type hit struct {
	where string
	count int
	at    time.Time
	// lines returns the lines of the result. It is called only for results that are shown.
	lines func(ctx context.Context) ([]string, error)
}

func (r *recaller) recall(ctx context.Context, words []string, limit int) (tool.Result, error) {
	var hits []hit
	var notes []string
	for _, place := range []struct {
		name string
		look func(context.Context, []string) ([]hit, bool, error)
	}{{"the files", r.files}, {"the sessions", r.sessions}} {
		found, cut, err := place.look(ctx, words)
		if ctx.Err() != nil {
			return tool.Result{}, ctx.Err()
		}
		if err != nil {
			notes = append(notes, fmt.Sprintf("[not all of %s could be searched: %v]", place.name, err))
		}
		if cut {
			notes = append(notes, fmt.Sprintf("[not all of %s were searched: there are too many]", place.name))
		}
		hits = append(hits, found...)
	}
	slices.SortStableFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.count, a.count), b.at.Compare(a.at), cmp.Compare(a.where, b.where))
	})
	return formatHits(ctx, hits, notes, limit)
}

// formatHits returns the results for the model.
func formatHits(ctx context.Context, hits []hit, notes []string, limit int) (tool.Result, error) {
	var text strings.Builder
	shown := 0
	for _, h := range hits[:min(limit, len(hits))] {
		lines, err := h.lines(ctx)
		switch {
		case ctx.Err() != nil:
			return tool.Result{}, ctx.Err()
		case errors.Is(err, backend.ErrNotFound):
			continue // gone since it was found
		case err != nil:
			lines = []string{fmt.Sprintf("[it could not be read: %v]", err)}
		}
		one := fmt.Sprintf("%s (%s)\n    %s\n\n", h.where, times(h.count), strings.Join(lines, "\n    "))
		if text.Len()+len(one) > maxText {
			break
		}
		text.WriteString(one)
		shown++
	}
	switch {
	case shown == 0:
		text.WriteString("Nothing was found. Try fewer or other words.")
	case shown < len(hits):
		notes = append(notes, fmt.Sprintf("[%d of %d results are shown: more words find fewer]", shown, len(hits)))
	}
	out := append([]string{strings.TrimSpace(text.String())}, notes...)
	return tool.Result{Text: strings.Join(out, "\n"), Summary: fmt.Sprintf("%d results", len(hits))}, nil
}

func times(n int) string {
	if n == 1 {
		return "1 match"
	}
	return fmt.Sprintf("%d matches", n)
}

// A candidate is a file that has all the words so far.
type candidate struct {
	count int // lines that have one of them, word by word
	line  int // the first line that has the rarest
	least int // how many lines have that
}

// files finds the files that contain all words. It reports whether there were too many to search all.
func (r *recaller) files(ctx context.Context, words []string) ([]hit, bool, error) {
	if r.Files == nil {
		return nil, false, nil
	}
	var having map[string]candidate
	cut := false
	for i, word := range words {
		found, err := r.Files.Grep(ctx, backend.Query{Pattern: word, Fixed: true, IgnoreCase: true, ByFile: true})
		if err != nil {
			return nil, false, err
		}
		cut = cut || found.Truncated
		now := make(map[string]candidate, len(found.Items))
		for _, m := range found.Items {
			if before, ok := having[m.Path]; ok || i == 0 {
				now[m.Path] = before.with(m)
			}
		}
		having = now
	}
	times, err := r.ages(ctx, having)
	hits := make([]hit, 0, len(having))
	for name, c := range having {
		hits = append(hits, r.file(name, c, times[name]))
	}
	return hits, cut, err
}

// with adds a match of one word.
func (c candidate) with(m backend.Match) candidate {
	if c.least == 0 || m.Count < c.least {
		c.least, c.line = m.Count, m.Line
	}
	c.count += m.Count
	return c
}

// ages returns when files were last written.
func (r *recaller) ages(ctx context.Context, files map[string]candidate) (map[string]time.Time, error) {
	dirs, times := map[string]bool{}, map[string]time.Time{}
	for name := range files {
		dirs[path.Dir(name)] = true
	}
	for dir := range dirs {
		infos, err := r.Files.List(ctx, dir)
		if err != nil {
			return times, err
		}
		for _, i := range infos {
			times[i.Path] = i.ModTime
		}
	}
	return times, nil
}

func (r *recaller) file(name string, c candidate, at time.Time) hit {
	return hit{
		where: label(path.Join(r.Dir, name)), count: c.count, at: at,
		lines: func(ctx context.Context) ([]string, error) {
			from := max(c.line-1-wordsearch.Around, 0)
			p, err := r.Files.Read(ctx, name, backend.Window{Offset: from, Limit: c.line + wordsearch.Around - from})
			lines := make([]string, len(p.Lines))
			for i, line := range p.Lines {
				lines[i] = fmt.Sprintf("%d  %s", p.Start+i, plain(line, wordsearch.MaxLine))
			}
			return lines, err
		},
	}
}

// plain returns a line of text for the result: valid, without control characters, and bounded.
func plain(line string, most int) string {
	line = strings.Map(func(c rune) rune {
		if c != '\t' && unicode.IsControl(c) {
			return utf8.RuneError
		}
		return c
	}, line)
	n := 0
	for i := range line {
		if n == most {
			return line[:i] + "…"
		}
		n++
	}
	return line
}

// label returns a path for a line. A path that would break the line is quoted.
func label(name string) string {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}

// How much of past sessions is searched, newest first.
const (
	maxSessions = 500
	maxBytes    = 64 << 20
	maxTime     = 10 * time.Second
)

// errEnough ends a search that has reached a bound.
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

// searched returns the results of a store that can search.
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

// hitOf returns a match as a result.
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

// A search reads one session after the other.
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

// bounded yields steps until the bound for all sessions is reached.
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
