package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
	"github.com/deckhand-dev/deckhand/runner/registry"
)

// newGateway returns a model behind a gateway with OpenAI's API that requires a
// signature on each request: the existing adapter with another authentication.
func newGateway(_ context.Context, s registry.ModelSpec) (model.Model, error) {
	if s.Key == nil {
		return nil, errors.New("the gateway requires signed requests; set spec.apiKeySecretRef of the Model")
	}
	return openai.New(openai.Options{
		Provider: openai.ProviderOpenAICompatible, Name: s.Name, Model: s.Model.Model,
		Endpoint: s.Endpoint, Headers: s.Headers,
		Timeouts: provider.TimeoutsOf(s.Timeouts),
		Sign:     func(req *http.Request) error { return authenticate(req, s.Key) },
	})
}

// authenticate adds a key and a signature to the headers of a request. The adapter keeps both
// out of all messages.
func authenticate(req *http.Request, readKey registry.KeyFunc) error {
	key, err := readKey() // each time, because Secrets rotate
	if err != nil {
		return fmt.Errorf("reading the key: %w", err)
	}
	copied, err := req.GetBody()
	if err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	body, err := io.ReadAll(copied)
	if err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("X-Signature", sign(key, body))
	return nil
}

func sign(key string, body []byte) string {
	sum := hmac.New(sha256.New, []byte(key))
	sum.Write(body)
	return hex.EncodeToString(sum.Sum(nil))
}
