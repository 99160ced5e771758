//go:build providers

package providers_test

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/anthropic"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// An account is what a smoke test needs of a provider: the variable with its key, and a small
// model, which the variable NAME_MODEL replaces, as
// NAME_ENDPOINT does the endpoint.
type account struct {
	key, model string
	build      func(provider.Options) (model.Model, error)
}

var providers = map[string]account{
	anthropic.ProviderAnthropic: {"ANTHROPIC_API_KEY", "claude-haiku-4-5", anthropic.New},
	anthropic.ProviderBedrock:   {"AWS_BEARER_TOKEN_BEDROCK", "us.anthropic.claude-haiku-4-5-20251001-v1:0", anthropic.New},
	openai.ProviderOpenAI:       {"OPENAI_API_KEY", "gpt-5-mini", openai.New},
	openai.ProviderOpenRouter:   {"OPENROUTER_API_KEY", "openai/gpt-5-mini", openai.New},
	openai.ProviderDeepSeek:     {"DEEPSEEK_API_KEY", "deepseek-flash", openai.New},
	openai.ProviderKimi:         {"MOONSHOT_API_KEY", "kimi-k2-0905-preview", openai.New},
}

// Each provider whose key is set answers with a tool call, then with a text, and reports
// its usage.
func TestProvidersAnswer(t *testing.T) {
	for name, p := range providers {
		t.Run(name, func(t *testing.T) {
			key := os.Getenv(p.key)
			if key == "" {
				t.Skipf("%s is not set", p.key)
			}
			m, err := p.build(provider.Options{
				Provider: name, Name: "smoke", Model: cmp.Or(os.Getenv(strings.ToUpper(name)+"_MODEL"), p.model),
				Endpoint: os.Getenv(strings.ToUpper(name) + "_ENDPOINT"),
				Key:      func() (string, error) { return key, nil },
				Timeouts: provider.Timeouts{Total: 2 * time.Minute},
			})
			if err != nil {
				t.Fatal(err)
			}
			session := []step.Step{{Seq: 1, Role: step.RoleUser, Parts: []step.Part{{Kind: step.PartText, Text: "Call the tool depth with the number 7. Then repeat what it returns."}}}}
			answer := ask(t, m, session)
			if len(answer.Calls) != 1 || answer.Calls[0].Name != "depth" || !strings.Contains(string(answer.Calls[0].Args), "7") {
				t.Fatalf("the model did not call the tool: %+v", answer)
			}
			answer.Seq = 2
			result := step.Step{Seq: 3, Role: step.RoleTool, CallID: answer.Calls[0].ID, Name: "depth", Parts: []step.Part{{Kind: step.PartText, Text: "42 fathoms"}}}
			if last := ask(t, m, append(session, answer, result)); !strings.Contains(text(last), "42") {
				t.Errorf("the model did not repeat the result: %+v", last)
			}
		})
	}
}

// ask returns the answer of a model to a session.
func ask(t *testing.T, m model.Model, session []step.Step) step.Step {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	schema := json.RawMessage(`{"type":"object","properties":{"number":{"type":"integer"}},"required":["number"]}`)
	request := &model.Request{
		System: "You test a program. Do what the user says, in few words.", Steps: session,
		Tools: []step.Tool{{Name: "depth", Description: "Measures the depth at a number.", Input: schema}},
	}
	response, err := model.Collect(m.Stream(ctx, request), func(model.Delta) {})
	if err != nil {
		t.Fatalf("asking: %v", err)
	}
	if response.Usage.InputTokens == 0 || response.Usage.OutputTokens == 0 {
		t.Errorf("no usage was reported: %+v", response.Usage)
	}
	answer := step.Step{Role: step.RoleAssistant, Parts: response.Parts, Finish: response.Finish, Model: "smoke"}
	for _, call := range response.Calls {
		answer.Calls = append(answer.Calls, step.Call{ID: "s2c1", Name: call.Name, Args: json.RawMessage(call.Args)})
	}
	return answer
}

// text returns what an assistant said.
func text(s step.Step) string {
	var b strings.Builder
	for _, part := range s.Parts {
		b.WriteString(part.Text)
	}
	return b.String()
}
