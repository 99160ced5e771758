package journal

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// page writes records into a book.
func page(t *testing.T, records ...Record) *Book {
	t.Helper()
	var b Book
	for i, r := range records {
		r.Seq = int64(i + 1)
		if err := b.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	return &b
}

func speaks(session string, seq int64, note step.Note) Record {
	return Record{Kind: KindStep, Session: session, Step: &step.Step{Seq: seq, Role: step.RoleUser, Note: note}}
}

// calling is a turn of so many calls in a session.
func calling(session string, seq int64, n int) Record {
	s := &step.Step{Seq: seq, Role: step.RoleAssistant, Usage: step.Usage{InputTokens: 100}}
	for i := range n {
		s.Calls = append(s.Calls, step.Call{ID: step.CallID(session, seq, i+1), Name: "agent", Args: []byte("{}")})
	}
	return Record{Kind: KindStep, Session: session, Step: s}
}

func resulting(session, call string, seq int64) Record {
	return Record{Kind: KindResult, Session: session, Step: &step.Step{Seq: seq, Role: step.RoleTool, CallID: call}}
}

func TestSessionsAreApart(t *testing.T) {
	b := page(
		t, speaks("", 1, ""), calling("", 2, 2),
		speaks("s2c1", 1, ""), calling("s2c1", 2, 1), speaks("s2c2", 1, ""),
		speaks("s2c1.s2c1", 1, ""), calling("s2c1.s2c1", 2, 1),
	)
	if diff := cmp.Diff([]string{"s2c1.s2c1", "s2c1"}, b.Below("s2c1")); diff != "" {
		t.Errorf("below -want +got:\n%s", diff)
	}
	for call, want := range map[string]bool{"s2c1": true, "s2c1.s2c1": true, "s2c1.s2c1.s2c1": true, "s2c1.s2c2": false, "s9c1": false, "s9c1.s1c1": false} {
		if got := b.Waits(call); got != want {
			t.Errorf("Waits(%s) = %t", call, got)
		}
	}
	// With its result, a call's session and all below it are forgotten.
	if err := b.Apply(resulting("", "s2c1", 3)); err != nil {
		t.Fatal(err)
	}
	if len(b.Below("s2c1")) > 0 || b.Session("s2c1").Last != 0 || b.Session("s2c2").Last != 1 {
		t.Errorf("what is left: %v", b.sessions)
	}
}

func TestASessionGoesOnBehindWhatIsHidden(t *testing.T) {
	records := []Record{speaks("", 1, "")}
	for seq := int64(2); seq < 20; seq += 2 {
		records = append(records, calling("", seq, 1), resulting("", step.CallID("", seq, 1), seq+1))
	}
	records = append(records, Record{Kind: KindIntent, Intent: &Intent{Name: "m"}}, Record{Kind: KindHide, Hide: &Hide{Through: 13, Summary: "a lot"}})
	b := page(t, records...)
	s := b.Session("")
	if s.Last != 19 || s.Asked != nil || len(s.Steps) != 8 || s.Steps[0].Seq != 1 || s.Steps[1].Note != step.NoteSummary || s.Steps[2].Seq != 14 {
		t.Errorf("the session is %+v", s)
	}
	if err := b.Apply(speaks("", 20, "")); err != nil {
		t.Error(err)
	}
	if err := b.Apply(speaks("", 20, "")); err == nil {
		t.Error("a step follows itself")
	}
	if err := b.Apply(calling("", 21, 1)); err != nil {
		t.Fatal(err)
	}
	if err := b.Apply(Record{Kind: KindHide, Hide: &Hide{Through: 20, Summary: "more"}}); err == nil {
		t.Error("a call is hidden that waits for its result")
	}
}

func TestDecisionsAreKept(t *testing.T) {
	decide := func(d Decision) Record { return Record{Kind: KindDecide, Decision: &d} }
	said := speaks("", 3, step.NoteMessage)
	said.Decision = &Decision{Name: "m", Type: "Message"}
	b := page(
		t, speaks("", 1, ""), calling("", 2, 1),
		decide(Decision{Name: "a", Request: "s2c1", Type: "Answer", Value: "yes"}),
		decide(Decision{Name: "g1", Request: "limit-steps-3", Type: "Grant", Steps: 2, Tokens: 5}),
		decide(Decision{Name: "g2", Request: "limit-steps-5", Type: "Grant", Steps: 3}),
		decide(Decision{Name: "no", Request: "s9c9", Type: "Answer", Refused: "nothing waits", Steps: 100}),
	)
	if got := b.Session("").Answers["s2c1"].Value; got != "yes" {
		t.Errorf("the answer is %q", got)
	}
	if want := (Grant{Steps: 5, Tokens: 5}); b.Granted != want {
		t.Errorf("granted %+v", b.Granted)
	}
	for _, r := range []Record{resulting("", "s2c1", 3), func() Record { said.Step.Seq = 4; return said }()} {
		if err := b.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "g1", "no", "m"} {
		if !b.Acted(name) {
			t.Errorf("%s was not acted on", name)
		}
	}
	if len(b.Session("").Answers) > 0 || len(b.Decided) != 5 {
		t.Errorf("answers %v, decided %v", b.Session("").Answers, b.Decided)
	}
	for n := range 100 {
		_ = b.Apply(decide(Decision{Name: fmt.Sprint(n)}))
	}
	if len(b.Decided) != keepDecided || !b.Acted("a") {
		t.Errorf("%d decisions are shown; the first is forgotten: %t", len(b.Decided), !b.Acted("a"))
	}
}

func TestAccountsOfSessions(t *testing.T) {
	b := page(t, Record{
		Kind: KindMeter, Session: "s2c1.s4c1", Meter: &step.Meter{Steps: 9},
		Accounts: []step.Meter{{Steps: 1}, {Steps: 3}},
	})
	if b.Meter.Steps != 9 || b.Session("s2c1").Used.Steps != 3 || b.Session("s2c1.s4c1").Used.Steps != 1 {
		t.Errorf("used %+v, %+v, %+v", b.Meter, b.Session("s2c1").Used, b.Session("s2c1.s4c1").Used)
	}
}

func TestANudgeIsRemembered(t *testing.T) {
	cases := map[string]struct {
		records []Record
		want    bool
	}{
		"until the end":            {[]Record{speaks("", 2, step.NoteStuck), speaks("", 3, step.NoteRunner)}, true},
		"until a person speaks":    {[]Record{speaks("", 2, step.NoteStuck), speaks("", 3, step.NoteMessage)}, false},
		"not into another attempt": {[]Record{speaks("", 2, step.NoteStuck), {Kind: KindMark, Mark: &Mark{Type: MarkEnded, Text: "Stuck"}}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := page(t, append([]Record{speaks("", 1, "")}, tc.records...)...)
			if got := b.Session("").Nudged; got != tc.want {
				t.Errorf("Nudged = %t", got)
			}
		})
	}
}

// A grant beyond all numbers adds nothing, and takes nothing of those before it.
func TestGrantsDoNotOverflow(t *testing.T) {
	grants := func(steps int64) Record {
		return Record{Kind: KindDecide, Decision: &Decision{Name: fmt.Sprint(steps), Type: "Grant", Steps: steps, Tokens: -steps}}
	}
	b := page(t, grants(5), grants(math.MaxInt64), grants(-7), grants(2))
	if want := (Grant{Steps: 7, Tokens: 7}); b.Granted != want {
		t.Errorf("granted %+v, want %+v", b.Granted, want)
	}
}
