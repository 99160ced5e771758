// Package sessiontest is the conformance suite of the port session.Store.
package sessiontest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// Run tests a store. Each call of open returns an empty store that uses the given clock. A store that is a
// [session.Searcher] is tested as such, too.
func Run(t *testing.T, open func(t *testing.T, now func() time.Time) session.Store) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, g testStore){
		"Append":      testAppend,
		"Invalid":     testInvalid,
		"Owner":       testOwner,
		"Status":      testStatus,
		"Whole":       testWhole,
		"Read":        testRead,
		"List":        testList,
		"Pages":       testPages,
		"Cursors":     testCursors,
		"Fork":        testFork,
		"Delete":      testDelete,
		"Search":      testSearch,
		"Cancelled":   testCancelled,
		"Writers":     testWriters,
		"AllAtOnce":   testAllAtOnce,
		"ManyAtATime": testMany,
	} {
		t.Run(name, func(t *testing.T) {
			c := &clock{at: noon}
			test(t, testStore{Store: open(t, c.now), clock: c})
		})
	}
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A clock advances by a second on each reading.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(time.Second)
	return c.at
}

type testStore struct {
	session.Store
	clock *clock
}

// row returns a row of the agent "scout".
func row(id string) session.Row { return session.Row{ID: id, App: "default", Agent: "scout"} }

// steps returns messages of the user, from a number on.
func steps(from int64, texts ...string) []step.Step {
	all := make([]step.Step, len(texts))
	for i, text := range texts {
		all[i] = step.Step{Seq: from + int64(i), Role: step.RoleUser, Parts: []step.Part{{Kind: step.PartText, Text: text}}}
	}
	return all
}

func (s testStore) appendTexts(t *testing.T, r session.Row, after int64, texts ...string) {
	t.Helper()
	if err := s.Append(t.Context(), r, after, steps(after+1, texts...)...); err != nil {
		t.Fatalf("Append(%s, %d): %v", r.ID, after, err)
	}
}

// contents returns a session as one text.
func (s testStore) contents(t *testing.T, id string, from int64) string {
	t.Helper()
	var words []string
	for s, err := range s.Read(t.Context(), id, from) {
		if err != nil {
			return "error: " + err.Error()
		}
		words = append(words, fmt.Sprintf("%d:%s", s.Seq, s.Text()))
	}
	return strings.Join(words, " ")
}

func wantContents(t *testing.T, g testStore, id, want string) {
	t.Helper()
	if got := g.contents(t, id, 1); got != want {
		t.Errorf("the session %s is %q, want %q", id, got, want)
	}
}

func wantError(t *testing.T, call string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", call, err, want)
	}
}

func testAppend(t *testing.T, g testStore) {
	g.appendTexts(t, row("a"), 0, "one", "two")
	g.appendTexts(t, row("a"), 2, "three")
	for _, after := range []int64{0, 2, 4} {
		err := g.Append(t.Context(), row("a"), after, steps(after+1, "late")...)
		var conflict *session.ConflictError
		if !errors.As(err, &conflict) || !errors.Is(err, session.ErrConflict) {
			t.Fatalf("Append behind %d: error %v, want a ConflictError", after, err)
		}
		if diff := cmp.Diff(&session.ConflictError{Session: "a", Last: 3}, conflict); diff != "" {
			t.Errorf("ConflictError -want +got:\n%s", diff)
		}
	}
	err := g.Append(t.Context(), row("none"), 7, steps(8, "x")...)
	wantError(t, "Append to a session that does not exist", err, session.ErrConflict)
	wantContents(t, g, "a", "1:one 2:two 3:three")
}

func testInvalid(t *testing.T, g testStore) {
	long := row("a")
	long.Agent = strings.Repeat("x", session.MaxField+1)
	gap := steps(1, "one", "two")
	gap[1].Seq = 3
	for name, err := range map[string]error{
		"a gap":                 g.Append(t.Context(), row("a"), 0, gap...),
		"a number that is late": g.Append(t.Context(), row("a"), 0, steps(2, "two")...),
		"a negative number":     g.Append(t.Context(), row("a"), -1, steps(0, "zero")...),
		"no id":                 g.Append(t.Context(), row(""), 0),
		"a long id":             g.Append(t.Context(), row(strings.Repeat("x", session.MaxID+1)), 0),
		"a long name":           g.Append(t.Context(), long, 0),
		"very many steps":       g.Append(t.Context(), row("a"), 0, steps(1, make([]string, session.MaxSteps+1)...)...),
	} {
		wantError(t, "Append with "+name, err, session.ErrInvalid)
	}
	_, err := g.List(t.Context(), session.Query{})
	wantError(t, "List", err, nil)
	wantError(t, "Read of what was refused", first(g.Read(t.Context(), "a", 1)), session.ErrNotFound)
}

// first returns the first error of a sequence.
func first(read func(func(step.Step, error) bool)) error {
	for _, err := range read {
		return err
	}
	return nil
}

func testOwner(t *testing.T, g testStore) {
	mine := session.Row{ID: "a", App: "app", Agent: "agent", User: "user"}
	g.appendTexts(t, mine, 0, "one")
	for _, theirs := range []session.Row{
		{ID: "a", App: "other", Agent: "agent", User: "user"},
		{ID: "a", App: "app", Agent: "other", User: "user"},
		{ID: "a", App: "app", Agent: "agent"},
	} {
		err := g.Append(t.Context(), theirs, 1, steps(2, "two")...)
		wantError(t, "Append to a session of another owner", err, session.ErrOwner)
	}
	wantContents(t, g, "a", "1:one")
}

func testStatus(t *testing.T, g testStore) {
	r := row("a")
	r.Status = "Running"
	g.appendTexts(t, r, 0, "one")
	g.appendTexts(t, row("a"), 1, "two")
	if got := g.only(t, session.Query{}); got.Status != "Running" {
		t.Errorf("after an Append without a status it is %q", got.Status)
	}
	r.Status = "Succeeded"
	wantError(t, "Append of a status alone", g.Append(t.Context(), r, 2), nil)
	wantError(t, "Append of a status to an earlier step", g.Append(t.Context(), r, 1), session.ErrConflict)
	got := g.only(t, session.Query{})
	want := session.Row{ID: "a", App: "default", Agent: "scout", Status: "Succeeded", Last: 2}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(session.Row{}, "Created", "Updated")); diff != "" {
		t.Errorf("row -want +got:\n%s", diff)
	}
	if !got.Created.After(noon) || !got.Updated.After(got.Created) {
		t.Errorf("created %v, updated %v", got.Created, got.Updated)
	}
}

// only returns the only row that a query selects.
func (s testStore) only(t *testing.T, q session.Query) session.Row {
	t.Helper()
	page, err := s.List(t.Context(), q)
	if err != nil || len(page.Rows) != 1 || page.Next != "" {
		t.Fatalf("List(%+v) = %+v, error %v, want one row", q, page, err)
	}
	return page.Rows[0]
}

// testWhole checks that a step is read as it was written.
func testWhole(t *testing.T, g testStore) {
	full := step.Step{
		Seq: 1, Role: step.RoleAssistant,
		Parts: []step.Part{
			{Kind: step.PartThinking, Text: "hm\n\u2603", Signature: "sig", Provider: []byte(`{"b":1,"a":[2]}`)},
			{Kind: step.PartText, Text: "said\t\"\\"},
		},
		Calls:  []step.Call{{ID: "s1c1", Name: "Read", Args: []byte(`{"path":"a","n":1.50}`)}},
		Finish: step.FinishCalls, Model: "m", Note: step.NoteNudge,
		Hooks: []step.Hook{{Name: "h", Point: "BeforeModel", Did: step.HookAllowed, Reason: "r"}},
		Usage: step.Usage{InputTokens: 1, CostMicroUSD: 2, Priced: true},
		Scope: step.Scope{Depth: 1, Parent: "s0c1", Agent: "scout"},
		At:    noon, Duration: time.Second,
	}
	result := step.Step{Seq: 2, Role: step.RoleTool, CallID: "s1c1", Name: "Read", IsError: true}
	wantError(t, "Append", g.Append(t.Context(), row("a"), 0, full, result), nil)
	var got []step.Step
	for s, err := range g.Read(t.Context(), "a", 1) {
		wantError(t, "Read", err, nil)
		got = append(got, s)
	}
	if diff := cmp.Diff([]step.Step{full, result}, got, cmpopts.EquateApproxTime(time.Microsecond)); diff != "" {
		t.Errorf("steps -want +got:\n%s", diff)
	}
}

func testRead(t *testing.T, g testStore) {
	texts := make([]string, 300)
	for i := range texts {
		texts[i] = fmt.Sprint(i + 1)
	}
	g.appendTexts(t, row("a"), 0, texts...)
	g.appendTexts(t, row("b"), 0, "other")
	for from, want := range map[int64]int{-5: 300, 0: 300, 1: 300, 150: 151, 300: 1, 301: 0, 1 << 40: 0} {
		n, next := 0, max(from, 1)
		for s, err := range g.Read(t.Context(), "a", from) {
			if err != nil || s.Seq != next || s.Text() != fmt.Sprint(next) {
				t.Fatalf("Read from %d: step %d (%s) where %d is due, error %v", from, s.Seq, s.Text(), next, err)
			}
			n, next = n+1, next+1
		}
		if n != want {
			t.Errorf("Read from %d: %d steps, want %d", from, n, want)
		}
	}
	wantError(t, "Read of nothing", first(g.Read(t.Context(), "none", 1)), session.ErrNotFound)
	n := 0
	for range g.Read(t.Context(), "a", 1) {
		if n++; n == 5 {
			break
		}
	}
}

func testDelete(t *testing.T, g testStore) {
	g.appendTexts(t, row("a"), 0, "one", "two")
	wantError(t, "Fork", g.Fork(t.Context(), "a", 1, row("fork")), nil)
	wantError(t, "Delete", g.Delete(t.Context(), "a"), nil)
	wantError(t, "Delete again", g.Delete(t.Context(), "a"), session.ErrNotFound)
	wantError(t, "Read of what was deleted", first(g.Read(t.Context(), "a", 1)), session.ErrNotFound)
	wantContents(t, g, "fork", "1:one")
	g.appendTexts(t, row("a"), 0, "anew")
	wantContents(t, g, "a", "1:anew")
}

func testCancelled(t *testing.T, g testStore) {
	g.appendTexts(t, row("a"), 0, "one")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, listing := g.List(ctx, session.Query{})
	for name, err := range map[string]error{
		"Append": g.Append(ctx, row("a"), 1, steps(2, "two")...),
		"Read":   first(g.Read(ctx, "a", 1)),
		"List":   listing, "Fork": g.Fork(ctx, "a", 1, row("b")),
		"Delete": g.Delete(ctx, "a"),
	} {
		wantError(t, name, err, context.Canceled)
	}
	wantContents(t, g, "a", "1:one")
}

// testSearch tests a store that is a [session.Searcher].
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

// wantExcerpt checks that an excerpt is within its bound and has one of the words.
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
