package openai

import (
	"encoding/json"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A provider that wants it otherwise is a row, as this one, which is DeepSeek.
func TestAProviderIsARow(t *testing.T) {
	c := &client{Options: Options{Model: "m"}, dialect: dialect{
		maxTokens: "max_tokens",
		reasoning: map[model.Reasoning]string{model.ReasoningOff: `{"thinking":{"type":"disabled"}}`},
		echo:      echoDemanded,
	}}
	got, err := c.body(&model.Request{
		Steps: []step.Step{
			{Role: step.RoleAssistant, Calls: []step.Call{{ID: "s1c1", Name: "Ls", Args: json.RawMessage(`{}`)}}},
			{Role: step.RoleTool, CallID: "s1c1"},
		},
		Params: model.Params{Reasoning: model.ReasoningOff},
	})
	want := `{"messages":[` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"s0001c001","type":"function","function":{"name":"Ls","arguments":"{}"}}],"reasoning_content":""},` +
		`{"role":"tool","content":"(no output)","tool_call_id":"s0001c001"}],` +
		`"model":"m","stream":true,"stream_options":{"include_usage":true},"thinking":{"type":"disabled"}}`
	if diff := gocmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
}

func TestReasoningPatchesAreObjects(t *testing.T) {
	for name, d := range dialects {
		for _, level := range []model.Reasoning{model.ReasoningOff, model.ReasoningLow, model.ReasoningMedium, model.ReasoningHigh} {
			if d.reasoning[level] == "" {
				t.Errorf("%s does not know %s", name, level)
			}
			if err := merge(map[string]any{}, d.reasoning[level]); err != nil {
				t.Errorf("%s %s: %v", name, level, err)
			}
		}
	}
}
