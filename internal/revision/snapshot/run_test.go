package snapshot

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/inputs"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A Run need not give what has a default, however its Agent declares that.
func TestInputHasTheDefaultsOfItsAgent(t *testing.T) {
	fields := &v1alpha1.Input{Fields: []v1alpha1.Field{{Name: "file"}, {Name: "lines", Type: v1alpha1.FieldInteger, Default: &runtime.RawExtension{Raw: []byte("3")}}}}
	for name, in := range map[string]*v1alpha1.Input{
		"fields": fields,
		"schema": {Schema: &runtime.RawExtension{Raw: inputs.Schema(fields)}},
	} {
		run := v1alpha1.RunSpec{Input: &runtime.RawExtension{Raw: []byte(`{"file":"a.go"}`)}}
		agent := task.Agent{InputSchema: inputs.Schema(in)}
		if got := string(wholeInput(run, agent)); got != `{"file":"a.go","lines":3}` {
			t.Errorf("%s: wholeInput() = %s", name, got)
		}
		if p := CheckRun(run, agent); p != nil {
			t.Errorf("%s: the Run is refused: %s", name, p.Message)
		}
	}
}

// A Run of an Agent without a schema may say its prompt either way.
func TestAPromptIsAnInput(t *testing.T) {
	cases := map[string]struct {
		prompt, input string
		want          string
	}{
		"a prompt":                 {"Do it.", "", `{"prompt":"Do it."}`},
		"a prompt as a parameter":  {"", `{"prompt":"Do it."}`, `{"prompt":"Do it."}`},
		"both":                     {"Do it.", `{"prompt":"Do that."}`, `{"prompt":"Do that."}`},
		"a prompt and other input": {"Do it.", `{"a":1}`, `{"a":1,"prompt":"Do it."}`},
		"no object":                {"Do it.", `[1]`, `[1]`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.RunSpec{Prompt: tc.prompt}
			if tc.input != "" {
				spec.Input = &runtime.RawExtension{Raw: []byte(tc.input)}
			}
			if got := string(wholeInput(spec, task.Agent{})); got != tc.want {
				t.Errorf("wholeInput() = %s, want %s", got, tc.want)
			}
		})
	}
}

// A Run that continues another may have no prompt: its agent has the conversation.
func TestAContinuationNeedsNoPrompt(t *testing.T) {
	run := v1alpha1.RunSpec{Agent: "fixer"}
	if p := CheckRun(run, task.Agent{}); p == nil {
		t.Error("a Run without a prompt is not refused")
	}
	run.ContinueFrom = &v1alpha1.ContinueFrom{Run: "fix"}
	if p := CheckRun(run, task.Agent{}); p != nil {
		t.Errorf("the Run is refused: %s", p.Message)
	}
}

// An Agent that declares no input has only a prompt: other values are refused rather than dropped.
func TestValuesOfTheInputAreDeclared(t *testing.T) {
	const refused = "spec.input.a: Agent fixer declares no input: add spec.input to it, or write the value into spec.prompt"
	for _, tc := range []struct{ prompt, input, want string }{
		{"Do it.", `{}`, ""},
		{"Do it.", `{"prompt":"Do that."}`, ""},
		{"", `{"prompt":"Do that."}`, ""},
		{"", `{"prompt":"Do that.","a":1}`, refused},
		{"Do it.", `{"b":1,"a":1}`, refused},
		{"Do it.", `{"` + strings.Repeat("a", 2000) + `":1}`, strings.Replace(refused, "input.a", "input."+task.Cut(strings.Repeat("a", 2000), 64), 1)},
	} {
		run := v1alpha1.RunSpec{Agent: "fixer", Prompt: tc.prompt, Input: &runtime.RawExtension{Raw: []byte(tc.input)}}
		got := ""
		if p := CheckRun(run, task.Agent{}); p != nil {
			got = p.Message
		}
		if got != tc.want {
			t.Errorf("prompt %q, input %s: %q, want %q", tc.prompt, tc.input, got, tc.want)
		}
	}
}

// Only a name that the Agent does not declare is a reason to declare an input.
func TestAnotherFaultIsNotOfTheInput(t *testing.T) {
	for prompt, want := range map[string]string{
		"${{ input.x }}":        "spec.prompt: column 11: there is no field x; input has prompt; Agent fixer declares no input: add spec.input to it",
		"${{ input.prompt + }}": "spec.prompt: column 20: mismatched input the end; the expression is incomplete",
	} {
		if p := CheckRun(v1alpha1.RunSpec{Agent: "fixer", Prompt: prompt}, task.Agent{}); p == nil || p.Message != want {
			t.Errorf("%s: %v, want %s", prompt, p, want)
		}
	}
}

func TestThePromptOfARunIsCompiled(t *testing.T) {
	agent := task.Agent{InputSchema: []byte(`{"type":"object","properties":{"topic":{"type":"string"},"n":{"type":"integer"}},"required":["topic"]}`)}
	for prompt, want := range map[string]string{
		"On ${{ input.topic.upperAscii() }} and ${{ input.n }}.": "",
		"${{ input.?n.orValue(1) * 2 }}":                         "",
		"On ${{ input.topik }}.":                                 "spec.prompt: column 14: there is no field topik; input has n, topic; did you mean topic?",
		"On\n${{ input.topic + 1 }}.":                            "spec.prompt: line 2, column 5: + does not go between a string and an int; write string(…) around the other value",
		"On ${{ input.n * 2 }}.":                                 "spec.prompt: column 8: input.n may be absent: write input.?n.orValue(0)",
		"On ${{ github.sha }}.":                                  "spec.prompt: column 8: there is no github; an expression here reads input; strings need quotes, as in 'github'; write $${{ where a literal ${{ is meant",
	} {
		run := v1alpha1.RunSpec{Agent: "fixer", Prompt: prompt, Input: &runtime.RawExtension{Raw: []byte(`{"topic":"tides"}`)}}
		got := ""
		if p := CheckRun(run, agent); p != nil {
			got = p.Message
		}
		if got != want {
			t.Errorf("%q: %q, want %q", prompt, got, want)
		}
	}
}
