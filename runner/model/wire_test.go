package model_test

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

func TestWireID(t *testing.T) {
	cases := map[string]struct {
		id, want string // empty: a hash
	}{
		"a call":                             {id: step.CallID("", 3, 1), want: "s0003c001"},
		"the last that fits":                 {id: step.CallID("", 9999, 999), want: "s9999c999"},
		"the first":                          {id: step.CallID("", 0, 0), want: "s0000c000"},
		"a call of a session below":          {id: step.CallID("s3c1", 12, 20), want: "s0012c020"},
		"a turn that does not fit":           {id: step.CallID("", 10000, 1)},
		"a call that does not fit":           {id: step.CallID("", 1, 1000)},
		"what only looks like one":           {id: "s03c1"},
		"a sign":                             {id: "s-1c2"},
		"no numbers":                         {id: "sc"},
		"a number alone":                     {id: "s1"},
		"something behind it":                {id: "s1c2x"},
		"an id that another framework wrote": {id: "call_abc"},
		"nothing":                            {},
	}
	seen := map[string]string{}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := model.WireID(tc.id)
			if tc.want != "" && got != tc.want {
				t.Errorf("WireID(%q) = %q, want %q", tc.id, got, tc.want)
			}
			if len(got) != 9 || strings.Trim(got, "0123456789abcdefghijklmnopqrstuvwxyz") != "" {
				t.Errorf("WireID(%q) = %q, want nine letters and digits", tc.id, got)
			}
			if other, twice := seen[got]; twice {
				t.Errorf("%q and %q have one id", tc.id, other)
			}
			seen[got] = tc.id
		})
	}
}
