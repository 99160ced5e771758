package recall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/store"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/session/memory"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A past is what an agent remembers, in the order in which it came.
type past struct {
	t        *testing.T
	at       time.Time
	files    *backend.Backend
	sessions session.Store
}

func newPast(t *testing.T) *past {
	p := &past{t: t, at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	now := func() time.Time { p.at = p.at.Add(time.Second); return p.at }
	p.files = backend.New(store.New(store.NewMemory(store.MemoryOptions{Now: now}), store.Options{}), now)
	p.sessions = memory.New(memory.Options{Now: now})
	return p
}

func (p *past) file(name, content string) {
	p.t.Helper()
	if _, err := p.files.Write(p.t.Context(), name, []byte(content), backend.Any); err != nil {
		p.t.Fatal(err)
	}
}

func (p *past) session(row session.Row, texts ...string) {
	p.t.Helper()
	var steps []step.Step
	for i, text := range texts {
		role := []step.Role{step.RoleUser, step.RoleAssistant}[i%2]
		steps = append(steps, step.Step{Seq: int64(i + 1), Role: role, Parts: []step.Part{
			{Kind: step.PartThinking, Text: "secretly thought"}, {Kind: step.PartText, Text: text},
		}})
	}
	if err := p.sessions.Append(p.t.Context(), row, 0, steps...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *past) options() Options {
	return Options{
		Files: p.files, Dir: "/memories", Sessions: p.sessions,
		Query: session.Query{App: "default", Agent: "scout"}, Self: "now",
		Now: func() time.Time { return p.at },
	}
}

func mine(id string) session.Row { return session.Row{ID: id, App: "default", Agent: "scout"} }

func call(t *testing.T, o Options, args string) string {
	t.Helper()
	got, err := New(o).Call(t.Context(), tool.Call{Name: Name, Args: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("recall %s: %v", args, err)
	}
	return got.Render()
}

func TestRecall(t *testing.T) {
	p := newPast(t)
	p.file("people/ann.md", "# Ann\n\nlikes tea\nand the color Blue\nlives in Bern\nhas a cat\n")
	p.file("old.md", "tea\n")
	p.file("new.md", "tea\n")
	p.session(mine("first"), "Which tea shall I buy?", "Buy the blue tin.\nIt is the best tea.")
	p.session(mine("now"), "tea tea tea")
	p.session(mine("now/s1c1"), "tea tea tea")
	p.session(session.Row{ID: "other", App: "default", Agent: "stranger"}, "tea tea tea")
	const ann = "/memories/people/ann.md (2 matches)\n    1  # Ann\n    2  \n    3  likes tea\n    4  and the color Blue\n    5  lives in Bern"
	const first = "session first of 2026-03-01, step 2 (assistant) (3 matches)\n    Buy the blue tin.\n    It is the best tea."
	cases := map[string]struct{ args, want string }{
		"all words, the most first":   {`{"query":"tea blue"}`, first + "\n\n" + ann},
		"in any case, parts of words": {`{"query":"TEA BLU"}`, first + "\n\n" + ann},
		"words said twice count once": {`{"query":"bern Bern"}`, "/memories/people/ann.md (1 match)\n    3  likes tea\n    4  and the color Blue\n    5  lives in Bern\n    6  has a cat"},
		"of equals, the newer first": {
			`{"query":"tea","limit":3}`,
			"session first of 2026-03-01, step 1 (user) (2 matches)\n    Which tea shall I buy?\n\n" +
				"/memories/new.md (1 match)\n    1  tea\n\n/memories/old.md (1 match)\n    1  tea\n[3 of 4 results are shown: more words find fewer]",
		},
		"words of which one is nowhere":   {`{"query":"tea coffee"}`, "Nothing was found. Try fewer or other words."},
		"thinking is not looked into":     {`{"query":"secretly"}`, "Nothing was found. Try fewer or other words."},
		"a pattern is words":              {`{"query":"t.a"}`, "Nothing was found. Try fewer or other words."},
		"no words":                        {`{"query":" \n"}`, "Error: The query has no words\n- Say what to look for."},
		"too many words":                  {`{"query":"` + strings.Repeat("ab ac ad ae af ag ah ai aj ", 1) + `a b c d e f g h"}`, "Error: The query is too long: it may have 16 different words and 1000 bytes\n- Look for the few words that what you want surely has."},
		"a long query":                    {`{"query":"` + strings.Repeat("a", 1001) + `"}`, "Error: The query is too long: it may have 16 different words and 1000 bytes\n- Look for the few words that what you want surely has."},
		"a limit out of range is clamped": {`{"query":"bern","limit":-3}`, "/memories/people/ann.md (1 match)\n    3  likes tea\n    4  and the color Blue\n    5  lives in Bern\n    6  has a cat"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := p.options()
			for _, in := range []session.Store{o.Sessions, unsearchable{o.Sessions}} {
				o.Sessions = in
				if diff := cmp.Diff(tc.want, call(t, o, tc.args)); diff != "" {
					t.Errorf("recall %s in %T -want +got:\n%s", tc.args, in, diff)
				}
			}
		})
	}
}

func TestWithNothingToLookInto(t *testing.T) {
	if got := call(t, Options{}, `{"query":"x"}`); got != "Nothing was found. Try fewer or other words." {
		t.Errorf("recall = %q", got)
	}
}

// However much there is, the answer is bounded.
func TestAnAnswerIsBounded(t *testing.T) {
	p := newPast(t)
	long := strings.Repeat("é", 5000) + "needle" + strings.Repeat("\x1b[31m", 5000)
	for i := range 60 {
		p.file(fmt.Sprint("f", i), strings.Repeat(long+"\n", 5))
		p.session(mine(fmt.Sprint("s", i)), strings.Repeat(long+"\n", 5))
	}
	got := call(t, p.options(), `{"query":"needle","limit":1000}`)
	if len(got) > maxText+1000 || strings.ContainsRune(got, '\x1b') || !strings.Contains(got, "results are shown") {
		t.Errorf("recall: %d bytes", len(got))
	}
	if !strings.Contains(got, "ééneedle") {
		t.Error("recall does not show what was found in a long line of a session")
	}
}

func TestASearchEndsInTime(t *testing.T) {
	p := newPast(t)
	for i := range 5 {
		p.session(mine(fmt.Sprint("s", i)), "needle")
	}
	o := p.options()
	o.Sessions = unsearchable{o.Sessions}
	o.Now = func() time.Time { p.at = p.at.Add(maxTime / 3); return p.at }
	got := call(t, o, `{"query":"needle"}`)
	if strings.Count(got, "session s") != 3 || !strings.HasSuffix(got, "[not all of the sessions were searched: there are too many]") {
		t.Errorf("recall = %q", got)
	}
}

// An unsearchable store does not search by itself.
type unsearchable struct{ session.Store }

// A Run does not find what it says itself, also not in a fork of its session.
func TestTheSessionsOfTheRunAreNotFound(t *testing.T) {
	p := newPast(t)
	for _, id := range []string{"now", "now/s1c1", "now~FORK", "now/s1c1~FORK"} {
		p.session(mine(id), "needle")
	}
	p.session(mine("now2"), "needle")
	o := p.options()
	for _, in := range []session.Store{o.Sessions, unsearchable{o.Sessions}} {
		o.Sessions = in
		if got, want := call(t, o, `{"query":"needle"}`), "session now2 of 2026-03-01, step 1 (user) (1 match)\n    needle"; got != want {
			t.Errorf("recall in %T = %q, want %q", in, got, want)
		}
	}
}

// A store that fails in the middle has said what it found so far.
type failingSearch struct{ session.Store }

func (failingSearch) Search(context.Context, session.Query, []string) ([]session.Match, error) {
	return []session.Match{{Row: mine("s"), Count: 2, Seq: 3, Role: step.RoleUser, Excerpt: "a\x1bb\nc\nd\ne\nf\ng"}}, errors.New("the index is broken")
}

func TestASearchOfTheStoreThatFailsIsReportedBesideWhatItFound(t *testing.T) {
	p := newPast(t)
	o := p.options()
	o.Sessions = failingSearch{}
	want := "session s of 0001-01-01, step 3 (user) (2 matches)\n    a\ufffdb\n    c\n    d\n    e\n    f\n[not all of the sessions could be searched: the index is broken]"
	if got := call(t, o, `{"query":"needle"}`); got != want {
		t.Errorf("recall = %q, want %q", got, want)
	}
}

// A broken past is one of which a part is down.
type brokenFiles struct{ backend.Driver }

func (brokenFiles) List(context.Context, string) ([]backend.Info, error) {
	return nil, errors.New("the disk is broken")
}

type brokenSessions struct{ session.Store }

func (brokenSessions) List(context.Context, session.Query) (session.Page, error) {
	return session.Page{}, errors.New("the store is down")
}

func TestAFailedSearchIsReportedBesideTheRest(t *testing.T) {
	p := newPast(t)
	p.file("f", "needle\n")
	p.session(mine("s"), "needle")
	o := p.options()
	o.Sessions = brokenSessions{}
	if got, want := call(t, o, `{"query":"needle"}`), "/memories/f (1 match)\n    1  needle\n[not all of the sessions could be searched: the store is down]"; got != want {
		t.Errorf("recall = %q, want %q", got, want)
	}
	o = p.options()
	o.Files = backend.New(brokenFiles{}, nil)
	want := "session s of 2026-03-01, step 1 (user) (1 match)\n    needle\n[not all of the files could be searched: grep \"\": the disk is broken]"
	if got := call(t, o, `{"query":"needle"}`); got != want {
		t.Errorf("recall = %q, want %q", got, want)
	}
}

func TestTheEndOfACallIsNoAnswer(t *testing.T) {
	p := newPast(t)
	p.file("f", "needle\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := New(p.options()).Call(ctx, tool.Call{Name: Name, Args: json.RawMessage(`{"query":"needle"}`)})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("recall: error %v, want context.Canceled", err)
	}
}

func TestSpec(t *testing.T) {
	spec := New(Options{}).Spec
	if spec.Name != Name || spec.Effect != tool.ReadOnly || !strings.HasPrefix(spec.Description, "Searches what is remembered") {
		t.Errorf("Spec() = %+v", spec)
	}
}
