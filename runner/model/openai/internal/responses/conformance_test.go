package responses_test

import (
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
)

func TestConformance(t *testing.T) {
	modeltest.RunResponses(t, func(t *testing.T, baseURL string) model.Model {
		m, err := openai.New(openai.Options{
			Provider: openai.ProviderOpenAICompatible, API: provider.APIResponses, Model: modeltest.ModelName, Endpoint: baseURL,
			Key: func() (string, error) { return modeltest.Key, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		return m
	})
}
