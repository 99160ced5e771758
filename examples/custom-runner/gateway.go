package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/deckhand-dev/deckhand/runner/config"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
)

// newGateway is a model behind a gateway that speaks as OpenAI does, but wants a
// signature on each request: the adapter that is there, over a transport of
// your own.
func newGateway(s config.ModelSpec) (model.Model, error) {
	if s.Key == nil {
		return nil, errors.New("the gateway wants signatures; set apiKeySecretRef")
	}
	return openai.New(openai.Options{
		Provider: openai.ProviderOpenAICompatible, Name: s.Name, Model: s.Model.Model,
		Endpoint: s.Endpoint, Headers: s.Headers, Key: s.Key,
		Transport: signing{key: s.Key, next: http.DefaultTransport},
	})
}

// signing puts a signature on requests.
type signing struct {
	key  config.KeyFunc
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (g signing) RoundTrip(req *http.Request) (*http.Response, error) {
	key, err := g.key() // anew each time: Secrets rotate
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
