package config

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/anthropic"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// formatAnthropic is the format of a Model whose provider has both APIs.
const formatAnthropic = "Anthropic"

// providers make the models of the built-in providers. AGENTS.md says how to add one.
var providers = map[string]registry.ModelFactory{
	openai.ProviderOpenAI:                 newOpenAI,
	openai.ProviderOpenAICompatible:       newOpenAI,
	openai.ProviderAzure:                  newOpenAI,
	openai.ProviderOpenRouter:             newOpenAI,
	openai.ProviderOllama:                 newOpenAI,
	openai.ProviderDeepSeek:               newByFormat,
	openai.ProviderKimi:                   newByFormat,
	anthropic.ProviderAnthropic:           newAnthropic,
	anthropic.ProviderAnthropicCompatible: newAnthropic,
	anthropic.ProviderBedrock:             newAnthropic,
}

// newByFormat makes the model of a provider that has the APIs of both packages.
func newByFormat(ctx context.Context, s registry.ModelSpec) (model.Model, error) {
	if s.API == provider.APIMessages || s.API == "" && s.Format == formatAnthropic {
		return newAnthropic(ctx, s)
	}
	return newOpenAI(ctx, s)
}

func newOpenAI(_ context.Context, s registry.ModelSpec) (model.Model, error) {
	return openai.New(openai.Options{
		Provider: s.Provider, API: apiOf(s.Model), Name: s.Name, Model: s.Model.Model,
		Endpoint: s.Endpoint, Headers: s.Headers, Key: s.Key, NoRepair: s.RequestRepair == task.RepairDisabled,
		Deployment: s.Deployment, APIVersion: s.APIVersion, Timeouts: provider.TimeoutsOf(s.Timeouts),
	})
}

// apiOf returns the API of a Model of OpenAI or Azure that names none: Responses for OpenAI at its own
// endpoint, and for its models that reason at Azure. What names chat completions keeps them: an
// address or a version of that API, and fields that are merged into its requests.
func apiOf(m task.Model) string {
	u, err := url.Parse(m.Endpoint)
	if m.API != "" || err != nil || m.APIVersion != "" || u.Query().Has("api-version") || len(m.Params.Extra) > 0 ||
		strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions") || strings.Contains(u.Path, "/openai/deployments/") {
		return m.API
	}
	isOwn := m.Endpoint == "" || u.Hostname() == "api.openai.com" || strings.HasSuffix(u.Hostname(), ".api.openai.com") // of a region
	if m.Provider == openai.ProviderOpenAI && isOwn || m.Provider == openai.ProviderAzure && isReasoning(m.Model) {
		return provider.APIResponses
	}
	return ""
}

// withAPI returns a Model as the agents of a Run use it: the fields that one of them merges into requests
// are those of chat completions, as the Model's own are.
func withAPI(m task.Model, s task.Snapshot) task.Model {
	merges := func(a task.Agent) bool { return len(a.Params.Extra) > 0 }
	if m.API == "" && (m.Provider == openai.ProviderOpenAI || m.Provider == openai.ProviderAzure) && slices.ContainsFunc(append(slices.Clip(s.Agents), s.Agent), merges) {
		m.API = provider.APIChatCompletions
	}
	return m
}

// isReasoning reports whether a model of OpenAI reasons, by its name.
func isReasoning(name string) bool {
	generation, isGPT := strings.CutPrefix(name, "gpt-")
	series, isO := strings.CutPrefix(name, "o")
	isDigit := func(s string, least byte) bool { return s != "" && s[0] >= least && s[0] <= '9' }
	return isGPT && isDigit(generation, '5') || isO && isDigit(series, '1') || strings.HasPrefix(name, "codex")
}

func newAnthropic(_ context.Context, s registry.ModelSpec) (model.Model, error) {
	return anthropic.New(anthropic.Options{
		Provider: s.Provider, API: s.API, Name: s.Name, Model: s.Model.Model,
		Endpoint: s.Endpoint, Headers: s.Headers, Key: s.Key, NoRepair: s.RequestRepair == task.RepairDisabled,
		Timeouts: provider.TimeoutsOf(s.Timeouts),
	})
}
