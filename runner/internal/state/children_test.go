package state

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// delegating is that a call asks for a child Run.
func delegating(session, call, id string) journal.Record {
	return journal.Record{Kind: journal.KindAsk, Session: session, At: noon, Request: &journal.Request{
		ID: id, CallID: call, Digest: "d-" + id, Delegation: &journal.Delegation{Agent: "reviewer", Args: `{"prompt":"look"}`},
	}}
}

// childEnds is that a child Run ended, and what the Run had used then.
func childEnds(session string, c journal.Child, used int64) journal.Record {
	total := step.Meter{Usage: step.Usage{InputTokens: used}}
	return journal.Record{Kind: journal.KindChild, Session: session, Child: &c, Meter: &total, Accounts: []step.Meter{total}}
}

// A journal on a disk and the records themselves make the same state.
func TestWhatChildRunsAreAskedForIsReadBack(t *testing.T) {
	well := journal.Child{Request: "s2c1-2", Run: "x-s2c1-2", Reason: "Finished", Text: "well", Output: `{"a":1}`, Usage: step.Usage{InputTokens: 7, Priced: true}}
	records := []journal.Record{
		speaks("", 1, ""), calling("", 2, 2), requestRecord("s2c1", "s2c1", 0), beginning("s2c1"), delegating("", "s2c1", "s2c1-2"),
		beginning("s2c1"), // taken up again
		childEnds("", well, 7), childEnds("", journal.Child{Request: "s2c1-2", Text: "again"}, 7),
		{Kind: journal.KindChild}, // of a later release, perhaps
	}
	d := open(t)
	for _, r := range records {
		if err := d.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	b, err := Replay(d.Read())
	if err != nil {
		t.Fatal(err)
	}
	s := b.Session("")
	asked, ok := s.Delegated("s2c1")
	want := Asked{Request: *records[4].Request, Since: noon, Spent: true}
	if diff := cmp.Diff(want, asked); diff != "" || !ok {
		t.Errorf("delegated %t, -want +got:\n%s", ok, diff)
	}
	if _, ok := s.Delegated("s2c2"); ok {
		t.Error("another call is known to have asked")
	}
	if diff := cmp.Diff(map[string]journal.Child{"s2c1-2": well}, s.Children); diff != "" || b.Meter.Usage.InputTokens != 7 || s.Used.Usage.InputTokens != 7 {
		t.Errorf("used %+v; children -want +got:\n%s", b.Meter, diff)
	}
	// An older runner did not count apart what child Runs used, as here.
	if err := b.Apply(childEnds("", journal.Child{Request: "s2c2", Usage: step.Usage{OutputTokens: 5, CostMicroUSD: 3}}, 12)); err != nil || !b.Delegates || b.Meter.ChildTokens != 12 || b.Meter.ChildCostMicroUSD != 3 {
		t.Errorf("used %+v: %v", b.Meter, err)
	}
	// With the results of the turn nobody asks for them any more.
	for n, call := range []string{"s2c1", "s2c2"} {
		if err := b.Apply(resulting("", call, int64(3+n))); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.Requests)+len(s.Children) > 0 {
		t.Errorf("left: %v, %v", s.Requests, s.Children)
	}
}
