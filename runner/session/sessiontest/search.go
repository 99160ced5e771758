package sessiontest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// testSearch holds a store that searches by itself to [session.Searcher].
func testSearch(t *testing.T, g testStore) {
	searcher, ok := g.Store.(session.Searcher)
	if !ok {
		return
	}
	long := strings.Repeat("x", 2*session.MaxExcerpt) + " needle " + strings.Repeat("y", 2*session.MaxExcerpt)
	g.appendTexts(t, row("first"), 0, "Which tea?", "Blue tin.\nThe best TEA, tea.", "tea")
	g.appendTexts(t, row("second"), 0, "tea", "nothing", long)
	g.appendTexts(t, session.Row{ID: "other", App: "default", Agent: "stranger"}, 0, "tea tea tea tea tea")
	thought := step.Step{Seq: 1, Role: step.RoleAssistant, Parts: []step.Part{{Kind: step.PartThinking, Text: "secret"}, {Kind: step.PartText, Text: "tea"}}}
	wantError(t, "Append", g.Append(t.Context(), row("third"), 0, thought), nil)
	for name, tc := range map[string]struct {
		query session.Query
		words string
		want  []string // session, count, step, role
	}{
		"most occurrences first, of equals the last updated": {session.Query{Agent: "scout"}, "tea", []string{"first 4 2 user", "third 1 1 assistant", "second 1 1 user"}},
		"all words, in several steps":                        {session.Query{Agent: "scout"}, "which blue", []string{"first 2 1 user"}},
		"the step with most of the words":                    {session.Query{Agent: "scout"}, "tea tin", []string{"first 5 2 user"}},
		"a part of a word":                                   {session.Query{Agent: "scout"}, "eedl", []string{"second 1 3 user"}},
		"a word that is nowhere":                             {session.Query{}, "tea coffee", nil},
		"no pattern":                                         {session.Query{}, "t.a", nil},
		"no wildcard":                                        {session.Query{}, "t%a", nil},
		"thinking is no text":                                {session.Query{}, "secret", nil},
		"only what the query selects":                        {session.Query{Agent: "stranger"}, "tea", []string{"other 5 1 user"}},
		"at most the limit":                                  {session.Query{Agent: "scout", Limit: 1}, "tea", []string{"first 4 2 user"}},
	} {
		matches, err := searcher.Search(t.Context(), tc.query, strings.Fields(tc.words))
		var got []string
		for _, m := range matches {
			got = append(got, fmt.Sprintf("%s %d %d %s", m.Row.ID, m.Count, m.Seq, m.Role))
			wantExcerpt(t, m, strings.Fields(tc.words))
		}
		if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("Search: %s: error %v, -want +got:\n%s", name, err, diff)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := searcher.Search(ctx, session.Query{}, []string{"tea"})
	wantError(t, "Search in a context that ended", err, context.Canceled)
}

// wantExcerpt holds an excerpt to its bound, and to having one of the words.
func wantExcerpt(t *testing.T, m session.Match, words []string) {
	t.Helper()
	if len(m.Excerpt) > session.MaxExcerpt {
		t.Errorf("Search: the excerpt of %s has %d bytes", m.Row.ID, len(m.Excerpt))
	}
	for _, w := range words {
		if strings.Contains(strings.ToLower(m.Excerpt), w) {
			return
		}
	}
	t.Errorf("Search: the excerpt of %s has no word: %q", m.Row.ID, m.Excerpt)
}
