package router_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/router"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// got is what the target named b is sent.
func got(t *testing.T, own model.Params, req *model.Request) *model.Request {
	t.Helper()
	b := does(says("Hi", 1))
	r := router.New([]router.Target{{Name: "b", Model: b, Params: own}}, nil)
	if _, err := model.Collect(r.Stream(t.Context(), req), nil); err != nil {
		t.Fatal(err)
	}
	return b.asked[0]
}

func TestAModelIsSentWhatItCanRead(t *testing.T) {
	thought := step.Part{Kind: step.PartThinking, Text: "Hm.", Signature: "sig", Provider: json.RawMessage(`{}`)}
	searched := step.Part{Kind: step.PartOpaque, Text: "(searched the web)", Provider: json.RawMessage(`{"type":"x"}`)}
	silent := step.Part{Kind: step.PartOpaque, Provider: json.RawMessage(`{"type":"x"}`)}
	said := step.Part{Kind: step.PartText, Text: "I look.", Provider: json.RawMessage(`{"phase":"commentary"}`)}
	called := step.Part{Kind: step.PartCall, Provider: json.RawMessage(`{"x":1}`)}
	last := step.Part{Kind: step.PartText, Text: "Done."}
	calls := []step.Call{{ID: "s2c1", Name: "Ls", Args: json.RawMessage(`{}`)}}
	parts := []step.Part{thought, silent, searched, said, called, last}
	cases := map[string]struct {
		model string
		want  []step.Part
	}{
		"its own step, whole":                 {"b", parts},
		"a step of before there were several": {"", parts},
		"of another's step what everybody can read": {"a", []step.Part{
			{Kind: step.PartText, Text: "(searched the web)"}, {Kind: step.PartText, Text: "I look."}, {Kind: step.PartCall}, last,
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			session := func() []step.Step {
				return []step.Step{
					{Seq: 1, Role: step.RoleUser, Parts: []step.Part{{Kind: step.PartText, Text: "Hello?"}}},
					{Seq: 2, Role: step.RoleAssistant, Model: tc.model, Parts: slices.Clone(parts), Calls: calls},
					{Seq: 3, Role: step.RoleTool, CallID: "s2c1", Parts: []step.Part{{Kind: step.PartText, Text: "a.txt"}}},
				}
			}
			req := &model.Request{Steps: session(), System: "Be brief.", CacheKey: "k"}
			sent := got(t, model.Params{}, req)
			want := &model.Request{Steps: session(), System: "Be brief.", CacheKey: "k"}
			want.Steps[1].Parts = tc.want
			if diff := cmp.Diff(want, sent); diff != "" {
				t.Errorf("sent: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(session(), req.Steps); diff != "" {
				t.Errorf("the session itself was changed: -want +got:\n%s", diff)
			}
		})
	}
}

// What a Model is sent only grows at its end, whoever answers in between: so its
// cache holds when it has the word again.
func TestASessionOfSeveralModelsOnlyGrowsAtItsEnd(t *testing.T) {
	var session []step.Step
	for i := range 100 {
		seq := int64(2*i + 1)
		session = append(session,
			step.Step{Seq: seq, Role: step.RoleUser, Parts: []step.Part{{Kind: step.PartText, Text: "Go on."}}},
			step.Step{Seq: seq + 1, Role: step.RoleAssistant, Model: []string{"a", "b", "b", ""}[i%4], Parts: []step.Part{
				{Kind: step.PartThinking, Text: "Hm.", Signature: "sig"},
				{Kind: step.PartOpaque, Provider: json.RawMessage(`{"type":"x"}`)},
				{Kind: step.PartText, Text: "Here."},
			}})
	}
	var before *model.Request
	for n := 1; n <= len(session); n += 2 {
		sent := got(t, model.Params{}, &model.Request{System: "Be brief.", Steps: session[:n:n], CacheKey: "k"})
		if before != nil {
			if diff := cmp.Diff(before.Steps, sent.Steps[:len(before.Steps)]); diff != "" {
				t.Fatalf("with %d steps: -before +now:\n%s", n, diff)
			}
		}
		before = sent
	}
}

func TestParamsOfARequestGoOverThoseOfTheModel(t *testing.T) {
	zero, half := 0.0, 0.5
	cases := map[string]struct{ request, own, want model.Params }{
		"the Model's stand where the request has none": {
			own:  model.Params{MaxOutputTokens: 100, Temperature: &half, TopP: &half, Reasoning: model.ReasoningLow, Extra: json.RawMessage(`{"b":1,"a":2}`)},
			want: model.Params{MaxOutputTokens: 100, Temperature: &half, TopP: &half, Reasoning: model.ReasoningLow, Extra: json.RawMessage(`{"b":1,"a":2}`)},
		},
		"the request's stand, a zero too": {
			request: model.Params{MaxOutputTokens: 7, Temperature: &zero, TopP: &zero, Reasoning: model.ReasoningOff},
			own:     model.Params{MaxOutputTokens: 100, Temperature: &half, TopP: &half, Reasoning: model.ReasoningLow},
			want:    model.Params{MaxOutputTokens: 7, Temperature: &zero, TopP: &zero, Reasoning: model.ReasoningOff},
		},
		"field by field": {
			request: model.Params{Temperature: &zero}, own: model.Params{MaxOutputTokens: 100},
			want: model.Params{Temperature: &zero, MaxOutputTokens: 100},
		},
		"extra is laid over extra, deep, and a null still removes": {
			request: model.Params{Extra: json.RawMessage(`{"provider":{"order":["x"]},"stream_options":null,"seed":12345678901234567890}`)},
			own:     model.Params{Extra: json.RawMessage(`{"provider":{"order":["y","z"],"sort":"price"},"user":"u"}`)},
			want:    model.Params{Extra: json.RawMessage(`{"provider":{"order":["x"],"sort":"price"},"seed":12345678901234567890,"stream_options":null,"user":"u"}`)},
		},
		"extra that is no object is left for who refuses it": {
			request: model.Params{Extra: json.RawMessage(`[1]`)}, own: model.Params{Extra: json.RawMessage(`{"a":1}`)},
			want: model.Params{Extra: json.RawMessage(`[1]`)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := *hello
			req.Params = tc.request
			sent := got(t, tc.own, &req)
			if diff := cmp.Diff(tc.want, sent.Params); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.request, req.Params); diff != "" {
				t.Errorf("the request itself was changed: -want +got:\n%s", diff)
			}
		})
	}
}
