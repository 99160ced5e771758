package state

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
)

var rule = journal.Source{Agent: "a", Rule: "commands", Tool: "Bash"}

// requestRecord is the record that people are asked about a call, at a minute of noon.
func requestRecord(call, id string, minute int) journal.Record {
	return journal.Record{
		Kind: journal.KindAsk, At: noon.Add(time.Duration(minute) * time.Minute),
		Request: &journal.Request{ID: id, CallID: call, Digest: "d-" + id, Groups: []string{"sre"}, Source: rule},
	}
}

func deciding(d journal.Decision) journal.Record {
	return journal.Record{Kind: journal.KindDecide, Decision: &d}
}

func beginning(call string) journal.Record {
	return journal.Record{Kind: journal.KindIntent, Intent: &journal.Intent{CallID: call, Name: "Bash", Effect: "Once"}}
}

// A journal on a disk and the records themselves make the same state.
func TestWhatPeopleAreAskedIsReadBack(t *testing.T) {
	approved := journal.Decision{Name: "d", By: "ann", Request: "s2c1", Type: "Approve", Digest: "d-s2c1", Scope: "Run", Reason: "fine", Source: rule}
	records := []journal.Record{
		speaks("", 1, ""), calling("", 2, 2), requestRecord("s2c1", "s2c1", 1), requestRecord("s2c2", "s2c2", 2), deciding(approved), beginning("s2c1"), requestRecord("s2c1", "s2c1-2", 3),
		{Kind: journal.KindMark, Mark: &journal.Mark{Type: journal.MarkNotice, Text: "a job is gone"}},
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
	asked := func(id, call string, minute int) Asked {
		r := requestRecord(call, id, minute)
		return Asked{Request: *r.Request, Since: r.At}
	}
	spent := asked("s2c1", "s2c1", 1)
	spent.Spent = true
	want := map[string][]Asked{"s2c1": {spent, asked("s2c1-2", "s2c1", 3)}, "s2c2": {asked("s2c2", "s2c2", 2)}}
	if diff := cmp.Diff(want, s.Requests); diff != "" {
		t.Errorf("requests -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]journal.Decision{"s2c1": approved}, s.Answers); diff != "" {
		t.Errorf("answers -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a job is gone"}, s.Notices); diff != "" || !b.Acted("d") {
		t.Errorf("owed -want +got:\n%s", diff)
	}
	// With the results of the turn nobody is asked about its calls any more.
	for n, call := range []string{"s2c1", "s2c2"} {
		if err := b.Apply(resulting("", call, int64(3+n))); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.Requests)+len(s.Answers) > 0 || !b.Released(rule) {
		t.Errorf("left: %v, %v; released %t", s.Requests, s.Answers, b.Released(rule))
	}
}

func TestWhatReleasesARule(t *testing.T) {
	cases := map[string]struct {
		d    journal.Decision
		want bool
	}{
		"an approval for the Run":          {journal.Decision{Type: "Approve", Scope: "Run", Request: "s2c1", Source: rule}, true},
		"one for the call":                 {journal.Decision{Type: "Approve", Scope: "Call", Request: "s2c1", Source: rule}, false},
		"one that says nothing of it":      {journal.Decision{Type: "Approve", Request: "s2c1", Source: rule}, false},
		"a denial":                         {journal.Decision{Type: "Deny", Scope: "Run", Request: "s2c1", Source: rule}, false},
		"what was refused":                 {journal.Decision{Type: "Approve", Scope: "Run", Request: "s2c1", Source: rule, Refused: "late"}, false},
		"an approval of another rule":      {journal.Decision{Type: "Approve", Scope: "Run", Request: "s2c1", Source: journal.Source{Agent: "a", Rule: "other", Tool: "Bash"}}, false},
		"of the rule for another tool":     {journal.Decision{Type: "Approve", Scope: "Run", Request: "s2c1", Source: journal.Source{Agent: "a", Rule: "commands", Tool: "Edit"}}, false},
		"of another agent's of that name":  {journal.Decision{Type: "Approve", Scope: "Run", Request: "s2c1", Source: journal.Source{Agent: "b", Rule: "commands", Tool: "Bash"}}, false},
		"an approval of no request at all": {journal.Decision{Type: "Approve", Scope: "Run", Source: rule}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := page(t, speaks("", 1, ""), calling("", 2, 1), requestRecord("s2c1", "s2c1", 0), deciding(tc.d))
			if got := b.Released(rule); got != tc.want {
				t.Errorf("Released() = %t", got)
			}
		})
	}
}

// A limit is asked about from the first time on, until somebody decides.
func TestSinceWhenALimitIsAskedAbout(t *testing.T) {
	ask := journal.Record{Kind: journal.KindAsk, At: noon, Request: &journal.Request{ID: "limit-steps-1"}}
	b := page(t, ask)
	if got := b.LimitRequestedAt("limit-steps-1"); !got.Equal(noon) || !b.LimitRequestedAt("limit-steps-2").IsZero() {
		t.Errorf("asked since %v", got)
	}
	if err := b.Apply(deciding(journal.Decision{Name: "g", Request: "limit-steps-1", Type: "Grant", Steps: 1})); err != nil || !b.LimitRequestedAt("limit-steps-1").IsZero() {
		t.Errorf("still asked (%v)", err)
	}
	if err := b.Apply(journal.Record{Kind: journal.KindAsk}); err != nil { // of a later release, perhaps
		t.Error(err)
	}
}

// The pending notices are bounded, and delivered with the next note of the runner.
func TestPendingNoticesOfASession(t *testing.T) {
	b := page(t, speaks("", 1, ""))
	for n := range 2 * maxNotices {
		if err := b.Apply(journal.Record{Kind: journal.KindMark, Mark: &journal.Mark{Type: journal.MarkNotice, Text: fmt.Sprint(n)}}); err != nil {
			t.Fatal(err)
		}
	}
	if s := b.Session(""); len(s.Notices) != maxNotices || s.Notices[0] != "8" {
		t.Errorf("owed %v", s.Notices)
	}
	for seq, note := range []step.Note{step.NoteMessage, step.NoteRunner} {
		if err := b.Apply(speaks("", int64(2+seq), note)); err != nil {
			t.Fatal(err)
		}
		if s := b.Session(""); (len(s.Notices) == 0) != (note == step.NoteRunner) {
			t.Errorf("behind %s it is owed %v", note, s.Notices)
		}
	}
}
