package openai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A strictServer refuses requests for a cause, and answers all others.
type strictServer struct {
	refuse func(body map[string]any) string // the message; empty: none
	bodies []map[string]any
	// inStream refuses with HTTP 200.
	inStream bool
}

// RoundTrip implements [http.RoundTripper].
func (s *strictServer) RoundTrip(r *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, err
	}
	s.bodies = append(s.bodies, body)
	if message := s.refuse(body); message != "" {
		refusal, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "code": 400}})
		if s.inStream {
			return streaming("data: "+strings.Replace(string(refusal), "{", `{"choices":[],`, 1), done)(r)
		}
		return wiretest.Answering(http.StatusBadRequest, "application/json", string(refusal))(r)
	}
	return streaming(delta(`{"content":"Hi"}`), `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`, done)(r)
}

// has returns a message if a field is in a body.
func has(field, message string) func(map[string]any) string {
	return func(body map[string]any) string {
		if _, ok := body[field]; ok {
			return message
		}
		return ""
	}
}

// eachMessage returns the first message that one returns for an assistant's message with calls.
func eachMessage(one func(map[string]any) string) func(map[string]any) string {
	return func(body map[string]any) string {
		for _, m := range body["messages"].([]any) {
			m := m.(map[string]any)
			if text := one(m); m["tool_calls"] != nil && text != "" {
				return text
			}
		}
		return ""
	}
}

// above refuses a limit of the answer.
func above(field string, most float64, message string) func(map[string]any) string {
	return func(body map[string]any) string {
		if n, _ := body[field].(float64); n > most {
			return fmt.Sprintf(message, n, most)
		}
		return ""
	}
}

// askTwice sends a request twice and returns what was repaired.
func askTwice(t *testing.T, m model.Model, req *model.Request) []model.Repair {
	t.Helper()
	var repairs []model.Repair
	for range 2 {
		r, err := model.Collect(m.Stream(t.Context(), req), func(d model.Delta) {
			if d.Repair != nil {
				repairs = append(repairs, *d.Repair)
			}
		})
		if err != nil || r.Finish != step.FinishStop {
			t.Fatalf("finish %q, error %v", r.Finish, err)
		}
	}
	return repairs
}

func TestRefusedRequestsAreRepaired(t *testing.T) {
	ls := `{"path": "."}`
	silent := []step.Step{wiretest.Says(step.RoleUser, "Hi"), asks("s2c1", "Ls", ls), answers("s2c1", "a.txt")}
	thinking := []step.Step{wiretest.Says(step.RoleUser, "Hi"), asks("s2c1", "Ls", ls, thought("Hm.", "")), answers("s2c1", "a.txt")}
	cases := map[string]struct {
		mod    func(*openai.Options)
		change func(*model.Request)
		refuse func(map[string]any) string
		kind   model.RepairKind
		stream bool
	}{
		"a refusal in the stream": {
			kind: model.RepairField, refuse: has("stream_options", `Unrecognized request argument supplied: stream_options`), stream: true,
		},
		"a cache key that the endpoint does not know": {
			mod: official, change: func(r *model.Request) { r.CacheKey = "k" }, kind: model.RepairField,
			refuse: has("prompt_cache_key", "Unrecognized request argument supplied: prompt_cache_key"),
		},
		"stream options that the endpoint does not know": {
			kind: model.RepairField, refuse: has("stream_options", `json: unknown field "stream_options"`),
		},
		"the other name of the limit": {
			change: func(r *model.Request) { r.Params.MaxOutputTokens = 100 }, kind: model.RepairField,
			refuse: has("max_tokens", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
		},
		"the older name of the limit": {
			mod: official, change: func(r *model.Request) { r.Params.MaxOutputTokens = 100 }, kind: model.RepairField,
			refuse: has("max_completion_tokens", "max_completion_tokens: Extra inputs are not permitted, did you mean max_tokens?"),
		},
		"a limit that is too large": {
			change: func(r *model.Request) { r.Params.MaxOutputTokens = 32_000 }, kind: model.RepairOutputLimit,
			refuse: above("max_tokens", 16_384, "max_tokens is too large: %.0f. This model supports at most %.0f completion tokens"),
		},
		"a limit that is too large, in extra": {
			change: func(r *model.Request) { r.Params.Extra = json.RawMessage(`{"max_tokens":9000}`) }, kind: model.RepairOutputLimit,
			refuse: above("max_tokens", 4096, "`max_tokens` is %.0f, and must be less than or equal to %.0f"),
		},
		"a limit above the rest of a small window": {
			change: func(r *model.Request) { r.Params.MaxOutputTokens = 8000 }, kind: model.RepairOutputLimit,
			refuse: above("max_tokens", 7692, "This model's maximum context length is 8192 tokens. However, you requested 8500 tokens (500 in the messages, %.0f in the completion). At most %.0f fit"),
		},
		"reasoning that is missing": {
			change: func(r *model.Request) { r.Steps = silent }, kind: model.RepairReasoning,
			refuse: eachMessage(func(m map[string]any) string {
				if text, _ := m["reasoning_content"].(string); text == "" {
					return "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"
				}
				return ""
			}),
		},
		"reasoning that is not wanted": {
			change: func(r *model.Request) { r.Steps = thinking }, kind: model.RepairReasoning,
			refuse: eachMessage(has("reasoning_content", "property 'messages.1.reasoning_content' is unsupported")),
		},
		"a mark of the cache that is not wanted": {
			mod: func(o *openai.Options) { o.Provider, o.Model = openai.ProviderOpenRouter, "anthropic/claude-sonnet-5" }, kind: model.RepairField,
			refuse: func(body map[string]any) string {
				if raw, _ := json.Marshal(body); strings.Contains(string(raw), "cache_control") {
					return "messages.0.content.0.cache_control: Extra inputs are not permitted"
				}
				return ""
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := *wiretest.Ask
			if tc.change != nil {
				tc.change(&req)
			}
			mods := []func(*openai.Options){tc.mod}
			if tc.mod == nil {
				mods = nil
			}
			server := &strictServer{refuse: tc.refuse, inStream: tc.stream}
			m := at(t, server, mods...)
			repairs := askTwice(t, m, &req) // the second request is right at once
			if len(server.bodies) != 3 || len(repairs) != 1 || repairs[0].Kind != tc.kind || repairs[0].Change == "" {
				t.Errorf("%d requests, repairs %+v", len(server.bodies), repairs)
			}
			server.bodies = nil
			m = at(t, server, append(mods, func(o *openai.Options) { o.NoRepair = true })...)
			if _, err := model.Collect(m.Stream(t.Context(), &req), nil); err == nil || len(server.bodies) != 1 {
				t.Errorf("without repairs: error %v after %d requests", err, len(server.bodies))
			}
		})
	}
}

// What a user has set is not left out, and a refusal that the repair does not remove ends the call.
func TestWhatIsNotRepaired(t *testing.T) {
	half := 0.5
	cases := map[string]struct {
		change func(*model.Request)
		refuse func(map[string]any) string
		want   model.Refusal
		asked  int
	}{
		"a temperature": {
			func(r *model.Request) { r.Params.Temperature = &half },
			has("temperature", "'temperature' is not supported with this model"),
			model.Refusal{Cause: model.CauseParameter, Field: "temperature", Setting: "inference.temperature"},
			1,
		},
		"a field of extra that the adapter sets, too": {
			func(r *model.Request) { r.Params.Extra = json.RawMessage(`{"stream_options":{"x":1}}`) },
			has("stream_options", "unknown field \"stream_options\""),
			model.Refusal{Cause: model.CauseParameter, Field: "stream_options", Setting: "inference.extra.stream_options"},
			1,
		},
		"a level of reasoning": {
			func(r *model.Request) { r.Params.Reasoning = model.ReasoningHigh },
			has("reasoning_effort", "Unsupported parameter: 'reasoning_effort'"),
			model.Refusal{Cause: model.CauseParameter, Field: "reasoning_effort", Setting: "inference.reasoning"},
			1,
		},
		"a server that refuses whatever is sent": {
			func(*model.Request) {},
			func(map[string]any) string { return "unknown field \"stream_options\"" },
			model.Refusal{},
			2,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := *wiretest.Ask
			tc.change(&req)
			server := &strictServer{refuse: tc.refuse}
			_, err := model.Collect(at(t, server).Stream(t.Context(), &req), nil)
			bad, ok := errors.AsType[*model.BadRequestError](err)
			if !ok || len(server.bodies) != tc.asked {
				t.Fatalf("%v after %d requests", err, len(server.bodies))
			}
			if diff := gocmp.Diff(tc.want, bad.Refusal); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
