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
	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/registry"
)

// newGateway returns a model behind a gateway with OpenAI's API that requires a
// signature on each request: the existing adapter with another transport.
func newGateway(_ context.Context, s registry.ModelSpec) (model.Model, error) {
	if s.Key == nil {
		return nil, errors.New("the gateway requires signed requests; set spec.apiKeySecretRef of the Model")
	}
	return openai.New(openai.Options{
		Provider: openai.ProviderOpenAICompatible, Name: s.Name, Model: s.Model.Model,
		Endpoint: s.Endpoint, Headers: s.Headers, Key: s.Key,
		Timeouts:  httpapi.TimeoutsOf(s.Timeouts),
		Transport: signing{key: s.Key, next: httpapi.NewTransport()},
	})
}

// signing is an http.RoundTripper that signs requests.
type signing struct {
	key  registry.KeyFunc
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (g signing) RoundTrip(req *http.Request) (*http.Response, error) {
	key, err := g.key() // each time, because Secrets rotate
	if err != nil {
		return nil, fmt.Errorf("reading the key: %w", err)
	}
	copied, err := req.GetBody()
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	body, err := io.ReadAll(copied)
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	signed := req.Clone(req.Context())
	signed.Header.Set("X-Signature", sign(key, body))
	return g.next.RoundTrip(signed)
}

func sign(key string, body []byte) string {
	sum := hmac.New(sha256.New, []byte(key))
	sum.Write(body)
	return hex.EncodeToString(sum.Sum(nil))
}
