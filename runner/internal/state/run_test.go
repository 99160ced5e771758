package state

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// page folds records.
func page(t *testing.T, records ...journal.Record) *Run {
	t.Helper()
	var b Run
	for i, r := range records {
		r.Seq = int64(i + 1)
		if err := b.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	return &b
}

func speaks(session string, seq int64, note step.Note) journal.Record {
	return journal.Record{Kind: journal.KindStep, Session: session, Step: &step.Step{Seq: seq, Role: step.RoleUser, Note: note}}
}

// calling is a turn of so many calls in a session.
func calling(session string, seq int64, n int) journal.Record {
	s := &step.Step{Seq: seq, Role: step.RoleAssistant, Usage: step.Usage{InputTokens: 100}}
	for i := range n {
		s.Calls = append(s.Calls, step.Call{ID: step.CallID(session, seq, i+1), Name: "agent", Args: []byte("{}")})
	}
	return journal.Record{Kind: journal.KindStep, Session: session, Step: s}
}

func resulting(session, call string, seq int64) journal.Record {
	return journal.Record{Kind: journal.KindResult, Session: session, Step: &step.Step{Seq: seq, Role: step.RoleTool, CallID: call}}
}

func TestSessionsAreApart(t *testing.T) {
	b := page(
		t, speaks("", 1, ""), calling("", 2, 2),
		speaks("s2c1", 1, ""), calling("s2c1", 2, 1), speaks("s2c2", 1, ""),
		speaks("s2c1.s2c1", 1, ""), calling("s2c1.s2c1", 2, 1),
	)
	if diff := cmp.Diff([]string{"s2c1.s2c1", "s2c1"}, b.OpenBelow("s2c1")); diff != "" {
		t.Errorf("below -want +got:\n%s", diff)
	}
	for call, want := range map[string]bool{"s2c1": true, "s2c1.s2c1": true, "s2c1.s2c1.s2c1": true, "s2c1.s2c2": false, "s9c1": false, "s9c1.s1c1": false} {
		if got := b.HasOpenCall(call); got != want {
			t.Errorf("Waits(%s) = %t", call, got)
		}
	}
	// With its result, a call's session and all below it are forgotten.
	if err := b.Apply(resulting("", "s2c1", 3)); err != nil {
		t.Fatal(err)
	}
	if len(b.OpenBelow("s2c1")) > 0 || b.Session("s2c1").Last != 0 || b.Session("s2c2").Last != 1 {
		t.Errorf("what is left: %v", b.sessions)
	}
}

func TestASessionGoesOnBehindWhatIsHidden(t *testing.T) {
	records := []journal.Record{speaks("", 1, "")}
	for seq := int64(2); seq < 20; seq += 2 {
		records = append(records, calling("", seq, 1), resulting("", step.CallID("", seq, 1), seq+1))
	}
	records = append(records, journal.Record{Kind: journal.KindIntent, Intent: &journal.Intent{Name: "m"}}, journal.Record{Kind: journal.KindHide, Hide: &journal.Hide{Through: 13, Summary: "a lot"}})
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
	if err := b.Apply(journal.Record{Kind: journal.KindHide, Hide: &journal.Hide{Through: 20, Summary: "more"}}); err == nil {
		t.Error("a call is hidden that waits for its result")
	}
}

func TestDecisionsAreKept(t *testing.T) {
	decide := func(d journal.Decision) journal.Record { return journal.Record{Kind: journal.KindDecide, Decision: &d} }
	said := speaks("", 3, step.NoteMessage)
	said.Decision = &journal.Decision{Name: "m", Type: "Message"}
	b := page(
		t, speaks("", 1, ""), calling("", 2, 1),
		decide(journal.Decision{Name: "a", Request: "s2c1", Type: "Answer", Value: "yes"}),
		decide(journal.Decision{Name: "g1", Request: "limit-steps-3", Type: "Grant", Steps: 2, Tokens: 5}),
		decide(journal.Decision{Name: "g2", Request: "limit-steps-5", Type: "Grant", Steps: 3}),
		decide(journal.Decision{Name: "no", Request: "s9c9", Type: "Answer", Refused: "nothing waits", Steps: 100}),
	)
	if got := b.Session("").Answers["s2c1"].Value; got != "yes" {
		t.Errorf("the answer is %q", got)
	}
	if want := (Grant{Steps: 5, Tokens: 5}); b.Granted != want {
		t.Errorf("granted %+v", b.Granted)
	}
	for _, r := range []journal.Record{resulting("", "s2c1", 3), func() journal.Record { said.Step.Seq = 4; return said }()} {
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
		_ = b.Apply(decide(journal.Decision{Name: fmt.Sprint(n)}))
	}
	if len(b.Decided) != keepDecided || !b.Acted("a") {
		t.Errorf("%d decisions are shown; the first is forgotten: %t", len(b.Decided), !b.Acted("a"))
	}
}

func TestAccountsOfSessions(t *testing.T) {
	b := page(t, journal.Record{
		Kind: journal.KindMeter, Session: "s2c1.s4c1", Meter: &step.Meter{Steps: 9},
		Accounts: []step.Meter{{Steps: 1}, {Steps: 3}},
	})
	if b.Meter.Steps != 9 || b.Session("s2c1").Used.Steps != 3 || b.Session("s2c1.s4c1").Used.Steps != 1 {
		t.Errorf("used %+v, %+v, %+v", b.Meter, b.Session("s2c1").Used, b.Session("s2c1.s4c1").Used)
	}
}

func TestANudgeIsRemembered(t *testing.T) {
	cases := map[string]struct {
		records []journal.Record
		want    bool
	}{
		"until the end":            {[]journal.Record{speaks("", 2, step.NoteStuck), speaks("", 3, step.NoteRunner)}, true},
		"until a person speaks":    {[]journal.Record{speaks("", 2, step.NoteStuck), speaks("", 3, step.NoteMessage)}, false},
		"not into another attempt": {[]journal.Record{speaks("", 2, step.NoteStuck), {Kind: journal.KindMark, Mark: &journal.Mark{Type: journal.MarkEnded, Text: "Stuck"}}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := page(t, append([]journal.Record{speaks("", 1, "")}, tc.records...)...)
			if got := b.Session("").Nudged; got != tc.want {
				t.Errorf("Nudged = %t", got)
			}
		})
	}
}

// A grant beyond all numbers adds nothing, and takes nothing of those before it.
func TestGrantsDoNotOverflow(t *testing.T) {
	grants := func(steps int64) journal.Record {
		return journal.Record{Kind: journal.KindDecide, Decision: &journal.Decision{Name: fmt.Sprint(steps), Type: "Grant", Steps: steps, Tokens: -steps}}
	}
	b := page(t, grants(5), grants(math.MaxInt64), grants(-7), grants(2))
	if want := (Grant{Steps: 7, Tokens: 7}); b.Granted != want {
		t.Errorf("granted %+v, want %+v", b.Granted, want)
	}
}
