//go:build e2e

package e2e

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// down is a turn that never comes: the provider is away.
var down = modeltest.Turn{Faults: []modeltest.Fault{{Kind: modeltest.FaultStatus, Status: 503, RetryAfter: "0", Times: -1}}}

// says is a turn of nothing but text.
func says(text string) modeltest.Turn { return modeltest.Turn{Text: text} }

// does is a turn of calls.
func does(calls ...modeltest.Call) modeltest.Turn { return modeltest.Turn{Calls: calls} }

// costing is a turn that says what it cost.
func costing(t modeltest.Turn, input, cacheRead, output int64) modeltest.Turn {
	t.Usage = &modeltest.Usage{Input: input, CacheRead: cacheRead, Output: output}
	return t
}

// modelExamples are about how models are reached.
var modelExamples = map[string]example{
	"providers.yaml": {
		models: map[string]modeltest.Dialogue{modeltest.AnyModel: turns(
			modeltest.Turn{Thinking: "I should look.", Text: "I look.", Calls: []modeltest.Call{call("Ls", args{"path": "/workspace"})}},
			says("There is: {{.LastToolResult}}"),
		)},
		check: checkProviders,
	},
	"fallback.yaml": {
		models: map[string]modeltest.Dialogue{
			"claude-sonnet-5": turns(
				modeltest.Turn{Thinking: "seventeen syllables", Calls: []modeltest.Call{call("Write", args{"path": "haiku.txt", "content": "the tide signs the log\n"})}},
				down,
			),
			"gpt-5-mini": turns(
				says("never"),
				does(call("Read", args{"path": "haiku.txt"})),
				says("It says: {{.LastToolResult}}"),
			),
		},
		check: func(s *exampleFixture) {
			s.has("the answer", s.says("fallback"), "the tide signs the log")
			if got := s.runs["fallback"].Status.Progress.Model; got != "fallback-gpt" {
				s.t.Errorf("the last to answer is %s", got)
			}
			var who []string
			for _, st := range s.steps("fallback") {
				if st.Role == step.RoleAssistant {
					who = append(who, st.Model)
				}
			}
			if !slices.Equal(who, []string{"fallback-claude", "fallback-gpt", "fallback-gpt"}) {
				s.t.Errorf("the steps are of %v", who)
			}
			requests := s.requestsWith("POST models/fallback-gpt/")
			if len(requests) != 2 || len(s.requestsWith("POST models/fallback-claude/")) < 3 {
				s.t.Fatalf("gpt was asked %d times", len(requests))
			}
			if s.lacks("what gpt was sent", requests[0].Body, "seventeen syllables", "c2NyaXB0ZWQ="); s.runs["fallback"].Status.Progress.Usage.Cost == "" {
				s.t.Error("the cost is not known")
			}
		},
	},
	"routes.yaml": {
		models: map[string]modeltest.Dialogue{
			"claude-opus-5": turns(
				does(call("Task", args{"prompt": "Write about the tide."})),
				does(modeltest.Call{Name: "Write", Args: json.RawMessage(`"{\"path\": \"contents.md\", \"content\": the tide and the fog"`)}),
				does(call("Write", args{"path": "fog.md", "content": "Fog."})),
				does(call("Write", args{"path": "pilots.md", "content": "Pilots."})),
				costing(does(call("Ls", args{"path": "/workspace"})), 39_000, 0, 100),
			),
			"claude-opus-5?SUMMARY OF THE CHAPTERS": {Turns: []modeltest.Turn{says("All is written.")}, After: modeltest.Repeat},
			"claude-sonnet-5":                       turns(does(call("Write", args{"path": "tide.md", "content": "Tide."})), says("The tide is written.")),
			"claude-haiku-4-5":                      turns(says(`{"path": "contents.md", "content": "the tide and the fog"}`)),
			"claude-haiku-4-5?about to become too":  {Turns: []modeltest.Turn{says("SUMMARY OF THE CHAPTERS: tide, fog, pilots.")}, After: modeltest.Repeat},
		},
		check: func(s *exampleFixture) {
			if got := s.says("routes"); got != "All is written." {
				s.t.Errorf("the answer is %q", got)
			}
			for model, times := range map[string]int{"routes-sonnet": 2, "routes-haiku": 2} {
				if got := len(s.requestsWith("POST models/" + model + "/")); got != times {
					s.t.Errorf("Model %s was asked %d times, want %d", model, got, times)
				}
			}
			if got := len(s.events("routes", step.EventCompacted)); got != 1 {
				s.t.Errorf("it was compacted %d times", got)
			}
			if c := s.runs["routes"].Status.Progress.Counts; c.Errors != 0 {
				s.t.Errorf("the arguments were not repaired: %+v", c)
			}
		},
	},
	"turn-routes.yaml": {
		models: map[string]modeltest.Dialogue{
			"claude-opus-5":    turns(does(call("Write", args{"path": "plan.md", "content": "Tides, fog, pilots."}))),
			"claude-haiku-4-5": turns(says("never"), costing(does(call("Write", args{"path": "tides.md", "content": "Tides."})), 70_000, 0, 100)),
			"claude-sonnet-5":  turns(says("never"), says("never"), says("All is written.")),
		},
		check: func(s *exampleFixture) {
			if got := s.says("turn-routes"); got != "All is written." {
				s.t.Errorf("the answer is %q", got)
			}
			var who []string
			for _, st := range s.steps("turn-routes") {
				if st.Role == step.RoleAssistant {
					who = append(who, st.Model)
				}
			}
			if want := []string{"turns-opus", "turns-haiku", "turns-sonnet"}; !slices.Equal(who, want) {
				s.t.Errorf("the steps are of %v, want %v", who, want)
			}
			for _, model := range []string{"turns-opus", "turns-haiku", "turns-sonnet"} {
				if got := len(s.requestsWith("POST models/" + model + "/")); got != 1 {
					s.t.Errorf("Model %s was asked %d times", model, got)
				}
			}
			if got := len(s.events("turn-routes", step.EventModelRouted)); got != 2 {
				s.t.Errorf("the log has %d events of a route, want 2", got)
			}
		},
	},
	"inference.yaml": {
		models: map[string]modeltest.Dialogue{
			"gpt-5-mini":     turns(modeltest.Turn{Text: "Many.", Usage: &modeltest.Usage{Input: 100, Output: 50, Reasoning: 40}}),
			"qwen/qwen3-32b": turns(says("Forty.")),
		},
		check: func(s *exampleFixture) {
			s.says("thinker")
			s.says("exact")
			if got := s.runs["thinker"].Status.Progress.Usage.ReasoningTokens; got != 40 {
				s.t.Errorf("%d tokens of reasoning", got)
			}
			s.has("what gpt was sent", s.requestsWith("POST models/inference-gpt/")[0].Body, `"reasoning_effort":"high"`, `"max_completion_tokens":8000`)
			qwen := s.requestsWith("POST models/qwen/")[0]
			s.has("what qwen was sent", qwen.Body, `"temperature":0`, `"top_p":0.9`, `"seed":7`, `"sort":"throughput"`)
			if got := qwen.Header["X-Title"]; !slices.Equal(got, []string{"Deckhand examples"}) {
				s.t.Errorf("the header is %q", got)
			}
		},
	},
	"prices.yaml": {
		models: map[string]modeltest.Dialogue{"gpt-5-mini": turns(
			costing(does(call("Ls", args{"path": "/workspace"})), 2000, 0, 100),
			costing(says("Nothing."), 2200, 2000, 10),
		)},
		check: func(s *exampleFixture) {
			s.says("thrifty")
			// 2,200 at 0.25, 2,000 from the cache at 0.025 and 110 at 2 dollars a million.
			u := s.runs["thrifty"].Status.Progress.Usage
			if u.Cost != "0.00082USD" || *u.CostMicroUSD != 820 || u.CacheReadTokens != 2000 || u.InputTokens != 4200 || u.TotalTokens != 2310 {
				s.t.Errorf("usage is %+v of %s", u, u.Cost)
			}
			s.has("the message", message(s.ended("broke", "False CostLimit")), "0.0007USD of 0.0005USD", "limits.cost")
		},
	},
}

// providerRequest is how a provider is spoken to.
type providerRequest struct{ path, header, key string }

// checkProviders wants each provider to be asked in its own way.
func checkProviders(s *exampleFixture) {
	bearer := providerRequest{"/chat/completions", "Authorization", "Bearer " + key}
	for name, want := range map[string]providerRequest{
		"anthropic":          {"/v1/messages", "X-Api-Key", key},
		"openai":             bearer,
		"azure":              {"/openai/v1/responses", "Api-Key", key},
		"bedrock":            {"/model/eu.anthropic.claude-haiku-4-5-20251001-v1%3A0/invoke-with-response-stream", "Authorization", "Bearer " + key},
		"openrouter":         bearer,
		"ollama":             {"/chat/completions", "", ""},
		"deepseek":           bearer,
		"deepseek-anthropic": {"/v1/messages", "X-Api-Key", key},
		"kimi":               bearer,
		"kimi-anthropic":     {"/v1/messages", "Authorization", "Bearer " + key},
		"vllm":               {"/chat/completions", "", ""},
		"gateway":            {"/v1/messages", "", ""},
	} {
		s.t.Run(name, func(t *testing.T) {
			inner := &exampleFixture{testNamespace: &testNamespace{t: t, name: s.name}, runs: s.runs}
			inner.has("the answer", inner.says(name), "The directory is empty")
			requests := inner.requestsWith("POST " + modelsName + "/" + name + want.path)
			if len(requests) != 2 {
				t.Fatalf("%s was asked %d times", want.path, len(requests))
			}
			if want.header != "" && !slices.Equal(requests[0].Header[want.header], []string{want.key}) {
				t.Errorf("%s is %q", want.header, requests[0].Header[want.header])
			}
		})
	}
}
