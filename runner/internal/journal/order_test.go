package journal

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/step"
)

func TestSteps(t *testing.T) {
	at := func(session string, seq int64, kind Kind, text string) Record {
		return Record{Session: session, Kind: kind, Step: &step.Step{Seq: seq, Parts: []step.Part{{Kind: step.PartText, Text: text}}}}
	}
	var m Memory
	for _, r := range []Record{
		{Kind: KindHeader},
		at("", 1, KindStep, "a"),
		{Kind: KindIntent, Intent: &Intent{}},
		at("", 2, KindStep, "b"),
		at("s2c1", 1, KindStep, "x"),
		at("", 5, KindResult, "e"), at("", 4, KindResult, "d"), at("", 4, KindResult, "again"),
		{Kind: KindHide, Hide: &Hide{Through: 2}},
		at("s2c1", 2, KindStep, "y"),
		at("", 3, KindResult, "c"), at("", 2, KindStep, "again"), at("", 6, KindStep, "f"), at("", 8, KindResult, "early"),
	} {
		_ = m.Append(r)
	}
	broken := func(yield func(Record, error) bool) {
		_ = yield(at("", 1, KindStep, "a"), nil) && yield(Record{}, errors.New("damaged"))
	}
	for name, tc := range map[string]struct {
		records iter.Seq2[Record, error]
		session string
		from    int64
		want    string
	}{
		"results are in call order":        {m.Read(), "", 1, "1:a 2:b 3:c 4:d 5:e 6:f"},
		"from a step on":                   {m.Read(), "", 4, "4:d 5:e 6:f"},
		"of another session":               {m.Read(), "s2c1", 0, "1:x 2:y"},
		"of a session that never was":      {m.Read(), "s9c9", 1, ""},
		"a journal that is damaged, later": {broken, "", 1, "1:a damaged"},
	} {
		var got []string
		for s, err := range Steps(tc.records, tc.session, tc.from) {
			if err != nil {
				got = append(got, err.Error())
				continue
			}
			got = append(got, fmt.Sprintf("%d:%s", s.Seq, s.Text()))
		}
		if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	for range Steps(m.Read(), "", 1) {
		break
	}
}
