package config

import (
	"context"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/anthropic"
	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
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
}

// newByFormat makes the model of a provider that has the APIs of both packages.
func newByFormat(ctx context.Context, s registry.ModelSpec) (model.Model, error) {
	if s.API == httpapi.APIMessages || s.API == "" && s.Format == formatAnthropic {
		return newAnthropic(ctx, s)
	}
	return newOpenAI(ctx, s)
}

func newOpenAI(_ context.Context, s registry.ModelSpec) (model.Model, error) {
	return openai.New(openai.Options{
		Provider: s.Provider, API: s.API, Name: s.Name, Model: s.Model.Model,
		Endpoint: s.Endpoint, Headers: s.Headers, Key: s.Key, NoRepair: s.RequestRepair == task.RepairDisabled,
		Deployment: s.Deployment, APIVersion: s.APIVersion, Timeouts: httpapi.TimeoutsOf(s.Timeouts),
	})
}

func newAnthropic(_ context.Context, s registry.ModelSpec) (model.Model, error) {
	return anthropic.New(anthropic.Options{
		Provider: s.Provider, API: s.API, Name: s.Name, Model: s.Model.Model,
		Endpoint: s.Endpoint, Headers: s.Headers, Key: s.Key, NoRepair: s.RequestRepair == task.RepairDisabled,
		Timeouts: httpapi.TimeoutsOf(s.Timeouts),
	})
}
