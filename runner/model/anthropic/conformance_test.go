package anthropic_test

import (
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/anthropic"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// openerFor returns how a provider's Model is made for the suite.
func openerFor(provider string) modeltest.Open {
	return func(t *testing.T, baseURL string) model.Model {
		t.Helper()
		m, err := anthropic.New(anthropic.Options{
			Provider: provider, Model: modeltest.ModelName, Endpoint: baseURL,
			Key: func() (string, error) { return modeltest.Key, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

func TestConformance(t *testing.T) {
	for _, provider := range []string{anthropic.ProviderAnthropic, anthropic.ProviderAnthropicCompatible, anthropic.ProviderBedrock} {
		t.Run(provider, func(t *testing.T) { modeltest.RunSigned(t, openerFor(provider)) })
	}
	for _, provider := range []string{anthropic.ProviderDeepSeek, anthropic.ProviderKimi} {
		t.Run(provider, func(t *testing.T) { modeltest.RunUnsigned(t, openerFor(provider)) })
	}
}
