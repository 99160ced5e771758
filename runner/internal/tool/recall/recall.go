package recall

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/session"
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

// Options say where to look. What is nil is not looked into.
type Options struct {
	// Files are the files that the agent keeps, which the model knows below Place
	// ("/memories").
	Files *backend.Backend
	Dir   string
	// Sessions are looked into as far as Query asks for them, which says whose they
	// are.
	Sessions session.Store
	Query    session.Query
	// Self is the id of the Run's own session. The model knows it, and those below
	// it, already.
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

// wordsOf are the different words of a query, in lower case.
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
	// lines shows what was found; called for those that are shown, alone.
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

// formatHits is what the model reads.
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
