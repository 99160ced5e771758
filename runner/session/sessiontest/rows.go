package sessiontest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/session"
)

// ids returns the ids of the sessions of a page.
func ids(rows []session.Row) string {
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.ID
	}
	return strings.Join(names, " ")
}

func testList(t *testing.T, g testStore) {
	for _, r := range []session.Row{
		{ID: "1", App: "a", Agent: "x", User: "u", Status: "Running"},
		{ID: "2", App: "a", Agent: "x", User: "v", Status: "Succeeded"},
		{ID: "3", App: "a", Agent: "y", User: "u", Status: "Running"},
		{ID: "4", App: "b", Agent: "x", User: "u", Status: "Failed"},
	} {
		g.appendTexts(t, r, 0, "hello")
	}
	made := map[string]time.Time{}
	all, err := g.List(t.Context(), session.Query{})
	wantError(t, "List", err, nil)
	for _, r := range all.Rows {
		made[r.ID] = r.Created
	}
	for name, tc := range map[string]struct {
		query session.Query
		want  string
	}{
		"everything, the newest first": {session.Query{}, "4 3 2 1"},
		"of an app":                    {session.Query{App: "a"}, "3 2 1"},
		"of an agent":                  {session.Query{Agent: "x"}, "4 2 1"},
		"of a user":                    {session.Query{User: "u"}, "4 3 1"},
		"of a status":                  {session.Query{Status: "Running"}, "3 1"},
		"of all of that":               {session.Query{App: "a", Agent: "x", User: "u", Status: "Running"}, "1"},
		"of an app without sessions":   {session.Query{App: "c"}, ""},
		"a part of a name is no name":  {session.Query{Status: "Run"}, ""},
		"from a time on":               {session.Query{From: made["3"]}, "4 3"},
		"before a time":                {session.Query{To: made["3"]}, "2 1"},
		"between two times":            {session.Query{From: made["2"], To: made["4"]}, "3 2"},
		"a limit out of range":         {session.Query{Limit: -1}, "4 3 2 1"},
	} {
		page, err := g.List(t.Context(), tc.query)
		if diff := cmp.Diff(tc.want, ids(page.Rows)); diff != "" || err != nil || page.Next != "" {
			t.Errorf("List %s: next %q, error %v, -want +got:\n%s", name, page.Next, err, diff)
		}
	}
}

// testPages checks that pages list each session exactly once while other sessions are added and deleted.
func testPages(t *testing.T, g testStore) {
	for i := range 7 {
		g.appendTexts(t, row(fmt.Sprint(i)), 0, "hello")
	}
	q := session.Query{Limit: 3}
	var seen []string
	for turn := range 10 {
		page, err := g.List(t.Context(), q)
		wantError(t, "List", err, nil)
		seen = append(seen, ids(page.Rows))
		switch turn {
		case 0: // one that was seen goes, a new one comes, an old one changes
			wantError(t, "Delete", g.Delete(t.Context(), "4"), nil)
			g.appendTexts(t, row("new"), 0, "hello")
			g.appendTexts(t, row("0"), 1, "again")
		case 1: // one that was not seen goes
			wantError(t, "Delete", g.Delete(t.Context(), "0"), nil)
			g.appendTexts(t, row("late"), 0, "hello")
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"6 5 4", "3 2 1", ""}, seen); diff != "" {
		t.Errorf("pages -want +got:\n%s", diff)
	}
	page, err := g.List(t.Context(), session.Query{Limit: 1 << 30})
	if err != nil || len(page.Rows) != 7 {
		t.Errorf("List without a limit: %s, error %v", ids(page.Rows), err)
	}
	exact, err := g.List(t.Context(), session.Query{Limit: 7})
	if err != nil || exact.Next != "" {
		t.Errorf("a page that holds all says that more follow, error %v", err)
	}
}

func testCursors(t *testing.T, g testStore) {
	g.appendTexts(t, row("a"), 0, "hello")
	for _, cursor := range []string{"x", "!", "AAAA", strings.Repeat("A", 5000), "MSA", "eCB5"} {
		_, err := g.List(t.Context(), session.Query{Cursor: cursor})
		wantError(t, "List from "+cursor[:1], err, session.ErrCursor)
	}
}

func testFork(t *testing.T, g testStore) {
	mine := session.Row{ID: "a", App: "app", Agent: "agent", User: "user", Status: "Failed"}
	g.appendTexts(t, mine, 0, "one", "two", "three")
	fork := session.Row{ID: "b", App: "other", Agent: "helper", User: "second", Status: "Running"}
	wantError(t, "Fork", g.Fork(t.Context(), "a", 2, fork), nil)
	got := g.only(t, session.Query{App: "other"})
	want := fork
	want.Last, want.Created, want.Updated, want.Origin = 2, got.Created, got.Updated, session.Origin{Session: "a", Through: 2}
	if diff := cmp.Diff(want, got); diff != "" || !got.Created.After(noon) {
		t.Errorf("the row of the fork -want +got:\n%s", diff)
	}
	g.appendTexts(t, fork, 2, "other")
	g.appendTexts(t, session.Row{ID: "a", App: "app", Agent: "agent", User: "user"}, 3, "four")
	wantContents(t, g, "b", "1:one 2:two 3:other")
	wantContents(t, g, "a", "1:one 2:two 3:three 4:four")

	wantError(t, "Fork of no steps", g.Fork(t.Context(), "a", 0, row("empty")), nil)
	wantContents(t, g, "empty", "")
	for name, err := range map[string]error{
		"up to -1":         g.Fork(t.Context(), "a", -1, row("c")),
		"up to 5":          g.Fork(t.Context(), "a", 5, row("c")),
		"without an id":    g.Fork(t.Context(), "a", 1, session.Row{}),
		"with a long user": g.Fork(t.Context(), "a", 1, session.Row{ID: "c", User: strings.Repeat("x", session.MaxField+1)}),
	} {
		wantError(t, "Fork "+name, err, session.ErrInvalid)
	}
	wantError(t, "Fork of a session that does not exist", g.Fork(t.Context(), "none", 0, row("c")), session.ErrNotFound)
	for _, taken := range []string{"a", "b"} {
		err := g.Fork(t.Context(), "a", 1, row(taken))
		var conflict *session.ConflictError
		if !errors.As(err, &conflict) || conflict.Last != map[string]int64{"a": 4, "b": 3}[taken] {
			t.Errorf("Fork with the id of another session: %v", err)
		}
	}
	wantContents(t, g, "b", "1:one 2:two 3:other")
}

// testWriters checks that one of several concurrent appends after the same step succeeds, and that the others get a
// conflict.
func testWriters(t *testing.T, g testStore) {
	g.appendTexts(t, row("a"), 0, "first")
	const writers, rounds = 4, 20
	var won [rounds + 2]atomic.Int64
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for round := int64(1); round <= rounds; round++ {
				err := g.Append(t.Context(), row("a"), round, steps(round+1, fmt.Sprint(w))...)
				if err == nil {
					won[round].Add(1)
				} else {
					wantError(t, "Append", err, session.ErrConflict)
				}
			}
		})
	}
	all.Wait()
	last := g.only(t, session.Query{}).Last
	for round := int64(1); round < last; round++ {
		if n := won[round].Load(); n != 1 {
			t.Errorf("behind step %d %d writers won", round, n)
		}
	}
	next := int64(1)
	for s, err := range g.Read(t.Context(), "a", 1) {
		if err != nil || s.Seq != next {
			t.Fatalf("step %d where %d is due, error %v", s.Seq, next, err)
		}
		next++
	}
	if next != last+1 {
		t.Errorf("%d steps, the row says %d", next-1, last)
	}
}

// testAllAtOnce checks that a reader sees either all steps of an Append or none.
func testAllAtOnce(t *testing.T, g testStore) {
	g.appendTexts(t, row("a"), 0, "0")
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := range int64(30) {
			if err := g.Append(t.Context(), row("a"), 1+3*i, steps(2+3*i, "a", "b", "c")...); err != nil {
				t.Errorf("Append: %v", err)
			}
		}
	})
	for range 50 {
		next := int64(1)
		for s, err := range g.Read(t.Context(), "a", 1) {
			if err != nil || s.Seq != next {
				t.Errorf("step %d where %d is due, error %v", s.Seq, next, err)
			}
			next++
		}
		if page, err := g.List(t.Context(), session.Query{}); err != nil || page.Rows[0].Last%3 != 1 {
			t.Errorf("the row says %+v, error %v", page.Rows, err)
		}
	}
	writing.Wait()
}

// testMany checks that concurrent writes to different sessions do not disturb each other.
func testMany(t *testing.T, g testStore) {
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			id := fmt.Sprint("s", i)
			for n := range int64(10) {
				if err := g.Append(t.Context(), row(id), n, steps(n+1, id)...); err != nil {
					t.Errorf("Append: %v", err)
				}
			}
			if err := errors.Join(g.Fork(t.Context(), id, 5, row(id+"~")), g.Delete(t.Context(), id+"~")); err != nil {
				t.Errorf("Fork and Delete: %v", err)
			}
		})
	}
	all.Wait()
	page, err := g.List(t.Context(), session.Query{})
	if err != nil || len(page.Rows) != 20 {
		t.Fatalf("List: %d rows, error %v", len(page.Rows), err)
	}
	for _, r := range page.Rows {
		if r.Last != 10 {
			t.Errorf("the session %s has %d steps", r.ID, r.Last)
		}
	}
}
