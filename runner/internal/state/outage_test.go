package state

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
)

func TestOutage(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 26, 10, minute, 0, 0, time.UTC) }
	wait := func(since, until int) journal.Record {
		m := journal.Mark{Type: journal.MarkOutage, Since: at(since)}
		if until > 0 {
			m.Until = at(until)
		}
		return journal.Record{Kind: journal.KindMark, Mark: &m}
	}
	says := func(seq int64, role step.Role) journal.Record {
		return journal.Record{Kind: journal.KindStep, Step: &step.Step{Seq: seq, Role: role}}
	}
	cases := map[string]struct {
		records []journal.Record
		want    Outage
	}{
		"a model that answers": {nil, Outage{}},
		"waits in a row":       {[]journal.Record{wait(1, 0), wait(3, 0)}, Outage{Since: at(1), SilentSince: at(1), Waits: 2}},
		"a time was named":     {[]journal.Record{wait(1, 0), wait(3, 9)}, Outage{Since: at(1), PromisedSince: at(3), Waits: 2}},
		"and passed": {
			[]journal.Record{wait(1, 0), wait(3, 9), wait(10, 0)},
			Outage{Since: at(1), PromisedSince: at(3), SilentSince: at(10), Waits: 3},
		},
		"a message of a user changes nothing": {[]journal.Record{wait(1, 0), says(2, step.RoleUser)}, Outage{Since: at(1), SilentSince: at(1), Waits: 1}},
		"an answer ends it":                   {[]journal.Record{wait(1, 5), says(2, step.RoleAssistant)}, Outage{}},
		"a summary ends it":                   {[]journal.Record{wait(1, 5), {Kind: journal.KindHide, Hide: &journal.Hide{Through: 1, Summary: "s"}}}, Outage{}},
		"hidden results do not":               {[]journal.Record{wait(1, 0), {Kind: journal.KindHide, Hide: &journal.Hide{Through: 1}}}, Outage{Since: at(1), SilentSince: at(1), Waits: 1}},
		"a pause ends it":                     {[]journal.Record{wait(1, 0), {Kind: journal.KindMark, Mark: &journal.Mark{Type: journal.MarkOutage}}}, Outage{}},
		"the end of an attempt ends it":       {[]journal.Record{wait(1, 0), {Kind: journal.KindMark, Mark: &journal.Mark{Type: journal.MarkEnded}}}, Outage{}},
		"of another session it is its own":    {[]journal.Record{{Kind: journal.KindMark, Session: "s2c1", Mark: &journal.Mark{Type: journal.MarkOutage, Since: at(1)}}}, Outage{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			records := slices.Concat([]journal.Record{says(1, step.RoleUser)}, tc.records)
			run := page(t, records...)
			if diff := cmp.Diff(tc.want, run.Session("").Outage); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
