package openai_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/step"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// row is a Model of each dialect, and of each of its exceptions.
type row struct {
	options   openai.Options
	reasoning model.Reasoning
}

var rows = map[string]row{
	"openai":                 {openai.Options{Provider: openai.ProviderOpenAI, Model: "gpt-5-mini"}, model.ReasoningHigh},
	"azure":                  {openai.Options{Provider: openai.ProviderAzure, Model: "gpt-4o", Endpoint: "https://name.openai.azure.com", Deployment: "team-a"}, ""},
	"azure-dated":            {openai.Options{Provider: openai.ProviderAzure, Model: "gpt-4o", Endpoint: "https://name.openai.azure.com/", Deployment: "team a", APIVersion: "2024-10-21"}, ""},
	"openrouter":             {openai.Options{Provider: openai.ProviderOpenRouter, Model: "z-ai/glm-4.6"}, model.ReasoningOff},
	"openrouter-anthropic":   {openai.Options{Provider: openai.ProviderOpenRouter, Model: "anthropic/claude-sonnet-4.5"}, model.ReasoningHigh},
	"ollama":                 {openai.Options{Provider: openai.ProviderOllama, Model: "qwen3:8b"}, model.ReasoningOff},
	"deepseek":               {openai.Options{Provider: openai.ProviderDeepSeek, Model: "deepseek-v4-pro"}, ""},
	"deepseek-off":           {openai.Options{Provider: openai.ProviderDeepSeek, Model: "deepseek-v4-pro"}, model.ReasoningOff},
	"kimi":                   {openai.Options{Provider: openai.ProviderKimi, Model: "kimi-k2.6"}, model.ReasoningMedium},
	"kimi-k3":                {openai.Options{Provider: openai.ProviderKimi, Model: "kimi-k3"}, model.ReasoningOff},
	"kimi-that-never-thinks": {openai.Options{Provider: openai.ProviderKimi, Model: "moonshot-v1-128k"}, model.ReasoningHigh},
	"compatible":             {openai.Options{Provider: openai.ProviderOpenAICompatible, Model: "m", Endpoint: "http://vllm/v1"}, model.ReasoningLow},
}

// conversation has a turn of this Model and one of another, each with thinking,
// a call and a result.
func conversation(reasoning model.Reasoning) *model.Request {
	zero, most := 0.0, 0.9
	own := asks("s2c1", "Ls", `{"path":"."}`, thought("I look.", ""), step.Part{Kind: step.PartText, Text: "Looking."})
	own.Calls = append(own.Calls, step.Call{ID: "s2c2", Name: "Read", Args: json.RawMessage(`{"path":"a.txt"}`)})
	silent := asks("s5c1", "Ls", `"{\"path\""`)
	foreign := asks("s7c1", "Ls", `{}`,
		step.Part{Kind: step.PartThinking, Text: "Secret thoughts.", Signature: "sig"},
		step.Part{Kind: step.PartOpaque, Text: "(searched)", Provider: json.RawMessage(`{"type":"web_search"}`)})
	foreign.Model = "another"
	return &model.Request{
		System:   "You are <brief> & kind.",
		CacheKey: "run-7",
		Params:   model.Params{MaxOutputTokens: 1000, Temperature: &zero, TopP: &most, Reasoning: reasoning},
		Tools: []step.Tool{
			{Name: "Ls", Description: "Lists files.", Input: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)},
			{Name: "Read", Description: "Reads a file.", Input: json.RawMessage(`{"type":"object"}`)},
		},
		Steps: []step.Step{
			wiretest.Says(step.RoleUser, "What is in a.txt?"),
			own, answers("s2c2", ""), answers("s2c1", "a.txt"),
			silent, answers("s5c1", "Error: the arguments are no JSON."),
			foreign, answers("s7c1", "a.txt"),
			{Role: step.RoleAssistant, Model: "sonnet", Parts: []step.Part{thought("Empty.", ""), {Kind: step.PartText, Text: "Nothing."}}},
			wiretest.Says(step.RoleUser, "Look again."),
		},
	}
}

// What each provider is sent for one conversation, to the byte of meaning. Read
// a changed file as the provider would.
func TestWhatEachProviderIsSent(t *testing.T) {
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			network := wiretest.RoundTrip(func(req *http.Request) (*http.Response, error) {
				got.WriteString(req.Method + " " + req.URL.String() + "\n")
				for _, header := range []string{"Authorization", "Api-Key"} {
					if value := req.Header.Get(header); value != "" {
						got.WriteString(header + ": " + value + "\n")
					}
				}
				raw, _ := io.ReadAll(req.Body)
				if err := json.Indent(&got, raw, "", "  "); err != nil {
					t.Error(err)
				}
				return nil, errors.New("enough")
			})
			r.options.Name, r.options.Transport = "sonnet", network
			r.options.Key = func() (string, error) { return "sk-golden", nil }
			m, err := openai.New(r.options)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = model.Collect(m.Stream(t.Context(), conversation(r.reasoning)), nil)
			golden(t, filepath.Join("testdata", "sent", name+".txt"), append(got.Bytes(), '\n'))
		})
	}
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, got, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("-want +got (go test -update rewrites %s):\n%s", path, diff)
	}
}
