package step_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/step"
)

func text(s string) step.Part { return step.Part{Kind: step.PartText, Text: s} }

func TestContent(t *testing.T) {
	place := func(data string) step.Part { return step.Part{Kind: step.PartCall, Provider: json.RawMessage(data)} }
	calls := []step.Call{{ID: "s2c1"}, {ID: "s2c2"}}
	cases := map[string]struct {
		step step.Step
		want []string
	}{
		"nothing":                      {step.Step{}, nil},
		"calls without parts are last": {step.Step{Parts: []step.Part{text("a")}, Calls: calls}, []string{"text a", "call s2c1", "call s2c2"}},
		"a part is the place of a call": {
			step.Step{Parts: []step.Part{text("a"), place("1"), text("b")}, Calls: calls},
			[]string{"text a", "call s2c1 1", "text b", "call s2c2"},
		},
		"the n-th part stands for the n-th call": {
			step.Step{Parts: []step.Part{place("1"), text("a"), place("2")}, Calls: calls},
			[]string{"call s2c1 1", "text a", "call s2c2 2"},
		},
		"a part without a call is passed over": {
			step.Step{Parts: []step.Part{place("1"), place("2"), place("3"), text("a")}, Calls: calls},
			[]string{"call s2c1 1", "call s2c2 2", "text a"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for p, call := range tc.step.Content() {
				line := string(p.Kind) + " " + p.Text
				if call != nil {
					line += call.ID
				}
				if p.Provider != nil {
					line += " " + string(p.Provider)
				}
				got = append(got, line)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			for range tc.step.Content() {
				break
			}
		})
	}
}

func TestForModel(t *testing.T) {
	data := json.RawMessage(`{"x":1}`)
	whole := step.Step{Role: step.RoleAssistant, Model: "a", Calls: []step.Call{{ID: "s2c1"}}, Parts: []step.Part{
		{Kind: step.PartThinking, Text: "hm", Signature: "s", Provider: data},
		{Kind: step.PartText, Text: "b", Provider: data},
		{Kind: step.PartCall, Provider: data},
		{Kind: step.PartOpaque, Text: "c", Provider: data},
		{Kind: step.PartOpaque, Provider: data},
	}}
	readable := whole
	readable.Parts = []step.Part{text("b"), {Kind: step.PartCall}, text("c")}
	unnamed := whole
	unnamed.Model = ""
	cases := map[string]struct {
		step, want step.Step
		model      string
	}{
		"the Model that answered": {whole, whole, "a"},
		"another Model":           {whole, readable, "b"},
		"all Models":              {whole, whole, ""},
		"a step without a Model":  {unnamed, unnamed, "b"},
		"a step without data":     {readable, readable, "b"},
		"a step of the user":      {step.Step{Role: step.RoleUser, Parts: []step.Part{text("b")}}, step.Step{Role: step.RoleUser, Parts: []step.Part{text("b")}}, "b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprint(tc.step)
			if got := fmt.Sprint(tc.step.ForModel(tc.model)); got != fmt.Sprint(tc.want) {
				t.Errorf("got %s, want %v", got, tc.want)
			}
			if after := fmt.Sprint(tc.step); after != before {
				t.Errorf("the step is now %s", after)
			}
		})
	}
}

// The form of a step of before is the form of today, and the place of a call adds no more
// than its kind.
func TestStoredContent(t *testing.T) {
	for _, stored := range []string{
		`{"seq":2,"role":"assistant","parts":[{"kind":"thinking","text":"hm","signature":"s"},{"kind":"text","text":"a"}],"calls":[{"id":"s2c1","name":"Ls","args":{}}]}`,
		`{"seq":2,"role":"assistant","parts":[{"kind":"opaque","provider":{"note":{"call":0}}}],"calls":[{"id":"s2c1","name":"Ls","args":{}}]}`,
		`{"seq":2,"role":"assistant","parts":[{"kind":"call"},{"kind":"text","text":"a","provider":{"phase":"x"}},{"kind":"call","provider":{"y":1}}],"calls":[{"id":"s2c1","name":"Ls","args":{}},{"id":"s2c2","name":"Ls","args":{}}]}`,
	} {
		var s step.Step
		if err := json.Unmarshal([]byte(stored), &s); err != nil {
			t.Fatal(err)
		}
		if again, err := json.Marshal(s); err != nil || string(again) != stored {
			t.Errorf("%s becomes %s, %v", stored, again, err)
		}
	}
}
