package router_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/model/router"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/anthropic"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A speaker is a Model of some dialect.
type speaker struct {
	provider, model, apiVersion string
	// delta is how it thinks.
	delta string
	// messages says that it speaks the wire of Anthropic's Messages, responses that it speaks
	// the wire of OpenAI's Responses.
	messages, responses bool
}

// secret is in all thinking: no other Model may read it.
const secret = "SECRET"

var speakers = map[string]speaker{
	"OpenAI":              {provider: openai.ProviderOpenAI, model: "gpt-5", delta: `{}`},
	"OpenAI's Responses":  {provider: openai.ProviderOpenAI, model: "gpt-5", responses: true},
	"Azure":               {provider: openai.ProviderAzure, model: "gpt-5", delta: `{}`},
	"Azure, dated":        {provider: openai.ProviderAzure, model: "gpt-5", apiVersion: "2024-10-21", delta: `{}`},
	"OpenRouter":          {provider: openai.ProviderOpenRouter, model: "z-ai/glm-4.6", delta: `{"reasoning":"SECRET"}`},
	"OpenRouter's Claude": {provider: openai.ProviderOpenRouter, model: "anthropic/claude", delta: `{"reasoning":"SECRET","reasoning_details":[{"type":"reasoning.text","text":"SECRET","signature":"SECRET"}]}`},
	"OpenRouter's Gemini": {provider: openai.ProviderOpenRouter, model: "google/gemini", delta: `{"extra_content":{"google":{"thought_signature":"SECRET"}},"reasoning_details":[{"type":"reasoning.encrypted","data":"SECRET"}]}`},
	"Ollama":              {provider: openai.ProviderOllama, model: "qwen3:8b", delta: `{"reasoning":"SECRET"}`},
	"Ollama, in the text": {provider: openai.ProviderOllama, model: "qwen3:8b", delta: `{"content":"<think>SECRET</think>"}`},
	"DeepSeek":            {provider: openai.ProviderDeepSeek, model: "deepseek-v4-pro", delta: `{"reasoning_content":"SECRET"}`},
	"Kimi":                {provider: openai.ProviderKimi, model: "kimi-k2.6", delta: `{"reasoning_content":"SECRET"}`},
	"a compatible one":    {provider: openai.ProviderOpenAICompatible, model: "m", delta: `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"SECRET"}]}]}`},
	"Anthropic":           {provider: anthropic.ProviderAnthropic, model: "claude-sonnet-4-5", messages: true},
	"Bedrock":             {provider: anthropic.ProviderBedrock, model: "eu.anthropic.claude-haiku-4-5-20251001-v1:0", messages: true},
	"DeepSeek's Messages": {provider: anthropic.ProviderDeepSeek, model: "deepseek-v4-pro", messages: true},
	"Kimi's Messages":     {provider: anthropic.ProviderKimi, model: "kimi-k2.6", messages: true},
	"compatible Messages": {provider: anthropic.ProviderAnthropicCompatible, model: "m", messages: true},
}

// claude is a turn of a Model on the wire of Anthropic's Messages, as it is
// recorded: thinking with a signature, thinking that is hidden, and a search.
var claude = step.Step{
	Role: step.RoleAssistant, Finish: step.FinishCalls,
	Parts: []step.Part{
		{Kind: step.PartThinking, Text: secret, Signature: secret},
		{Kind: step.PartThinking, Provider: json.RawMessage(`{"type":"redacted_thinking","data":"SECRET"}`)},
		{Kind: step.PartOpaque, Text: "(searched the web)", Provider: json.RawMessage(`{"type":"server_tool_use","id":"SECRET"}`)},
		{Kind: step.PartText, Text: "I look."},
	},
	Calls: []step.Call{{Name: "Ls", Args: json.RawMessage(`{"path":"."}`)}, {Name: "no such tool!", Args: json.RawMessage(`{}`)}},
}

// turn is the turn with calls of a speaker, as it is recorded under its name.
func turn(t *testing.T, name string) step.Step {
	t.Helper()
	s := claude
	if sp := speakers[name]; !sp.messages {
		s = sp.turn(t)
	}
	s.Seq, s.Model = 2, name
	s.Calls = append([]step.Call(nil), s.Calls...)
	for i := range s.Calls {
		s.Calls[i].ID = step.CallID("", 2, i+1)
	}
	return s
}

func (s speaker) turn(t *testing.T) step.Step {
	t.Helper()
	lines := []string{
		`{"choices":[{"delta":` + s.delta + `}]}`,
		`{"choices":[{"delta":{"content":"I look."}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"functions.Ls:0","function":{"name":"Ls","arguments":"{\"path\":\".\"}"},"extra_content":{"google":{"thought_signature":"SECRET"}}},` +
			`{"index":1,"id":"functions.no:1","function":{"name":"no such tool!","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
		"[DONE]",
	}
	if s.responses {
		lines = []string{
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","encrypted_content":"SECRET","summary":[{"text":"SECRET"}]}}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"type":"message","phase":"SECRET","content":[{"text":"I look."}]}}`,
			`{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","call_id":"SECRET","name":"Ls","arguments":"{\"path\":\".\"}"}}`,
			`{"type":"response.output_item.done","output_index":3,"item":{"type":"function_call","call_id":"SECRET_2","name":"no such tool!","arguments":"{}"}}`,
			`{"type":"response.completed","response":{"status":"completed"}}`,
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: " + strings.Join(lines, "\n\ndata: ") + "\n\n"))
	}))
	defer server.Close()
	r, err := model.Collect(s.at(t, server.URL, "").Stream(t.Context(), hello), nil)
	if err != nil || len(r.Calls) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	recorded := step.Step{Role: step.RoleAssistant, Parts: r.Parts, Finish: r.Finish}
	for _, c := range r.Calls {
		recorded.Calls = append(recorded.Calls, step.Call{Name: c.Name, Args: json.RawMessage(c.Args)})
	}
	return recorded
}

// at is the speaker at an endpoint.
func (s speaker) at(t *testing.T, url, name string) model.Model {
	t.Helper()
	if s.messages {
		m, err := anthropic.New(anthropic.Options{Provider: s.provider, Model: s.model, Name: name, Endpoint: url})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	o := openai.Options{Provider: s.provider, Model: s.model, APIVersion: s.apiVersion, Name: name, Endpoint: url + "/v1"}
	if s.responses {
		o.API = provider.APIResponses
	}
	m, err := openai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Each Model's turn with calls is sent to each other one, by a router that fell
// back to it: the request is one that strict providers accept, and holds nothing
// that only the first could read.
func TestEachModelsTurnCanBeSentToEachOther(t *testing.T) {
	for from := range speakers {
		recorded := turn(t, from)
		for to, sp := range speakers {
			if (sp.messages || sp.responses) && from == to {
				continue // which signs its thinking, or seals it, and tests that itself
			}
			t.Run(from+" to "+to, func(t *testing.T) {
				sent := replay(t, recorded, to)
				if from != to && strings.Contains(sent, secret) {
					t.Errorf("%s reads what only %s can: %s", to, from, sent)
				}
				if !strings.Contains(sent, "I look.") || !strings.Contains(sent, "s0002c002") {
					t.Errorf("the turn is not in %s", sent)
				}
			})
		}
	}
}

// replay is what a speaker is sent when it takes over after a turn.
func replay(t *testing.T, recorded step.Step, to string) string {
	t.Helper()
	// DeepSeek and Kimi demand thinking with each call, and sign none.
	unsigned := speakers[to].provider == anthropic.ProviderDeepSeek || speakers[to].provider == anthropic.ProviderKimi
	script := modeltest.NewServer(modeltest.Script{Unsigned: unsigned, Models: map[string]modeltest.Dialogue{
		modeltest.AnyModel: {Turns: []modeltest.Turn{{Text: "Hi"}}, After: modeltest.Repeat},
	}})
	server := httptest.NewServer(script)
	defer server.Close()
	r := router.New([]router.Target{
		{Name: "gone", Model: does(fails(busy))},
		{Name: to, Model: speakers[to].at(t, server.URL, to)},
	}, nil)
	result := func(call, text string) step.Step {
		return step.Step{Role: step.RoleTool, CallID: call, Parts: []step.Part{{Kind: step.PartText, Text: text}}}
	}
	req := &model.Request{
		System: "Be brief.", CacheKey: "run-7",
		Steps: []step.Step{hello.Steps[0], recorded, result("s2c1", "a.txt"), result("s2c2", "Error: no such tool")},
		Tools: []step.Tool{{Name: "Ls", Description: "Lists files.", Input: json.RawMessage(`{"type":"object"}`)}},
	}
	answer, err := model.Collect(r.Stream(t.Context(), req), nil)
	if err != nil || answer.Model != to {
		t.Fatalf("answered by %q: %v", answer.Model, err)
	}
	return string(script.Requests()[0].Raw)
}

// What goes to the one who wrote it, goes back whole.
func TestAModelGetsItsOwnTurnBack(t *testing.T) {
	for _, name := range []string{"OpenRouter", "OpenRouter's Claude", "OpenRouter's Gemini", "Ollama", "DeepSeek", "Kimi", "a compatible one"} {
		if sent := replay(t, turn(t, name), name); !strings.Contains(sent, secret) {
			t.Errorf("%s does not get its own thinking back: %s", name, sent)
		}
	}
}
