// Package provider has the options that the adapters of providers share (packages openai and anthropic): which model to
// use, where, and with which timeouts.
package provider

import (
	"net/http"
	"time"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// The APIs of providers. Package openai has the first two.
const (
	APIResponses       = "Responses"
	APIChatCompletions = "ChatCompletions"
	APIMessages        = "Messages"
)

// Options select and configure a model.
type Options struct {
	// Provider is one of the Provider constants of the package that gets the Options.
	Provider string
	// API is one of the API constants. Empty is APIChatCompletions for package openai, and
	// APIMessages for package anthropic.
	API string
	// Name is the name under which steps record this model. Thinking, and blocks of
	// the provider's own, that are recorded under another name are not sent; empty
	// sends all of them.
	Name string
	// Model is the provider's name of the model.
	Model string
	// Endpoint is the base URL. Most providers have a default.
	Endpoint string
	// Deployment is Azure's name of the deployment, if it differs. APIVersion, a date, is for an Azure resource without
	// the newer API. Other providers have neither.
	Deployment, APIVersion string
	// Headers are sent with each request, and override those of the API.
	Headers map[string]string
	// NoRepair disables sending refused requests again with a change.
	NoRepair bool
	// Key is called before each request, because Secrets rotate, and sent in the header of the provider. If it is nil
	// or returns an empty key, none is sent.
	Key func() (string, error)
	// Sign authenticates a request instead of Key. It is called for each request after all other headers are set, and
	// GetBody of the request returns its body. Messages never quote the headers that it adds. Its error means that the
	// credential cannot be read.
	Sign func(*http.Request) error
	// Timeouts bound the waits for an answer.
	Timeouts Timeouts
	// Transport and Now replace the network and the clock; both may be nil.
	Transport http.RoundTripper
	Now       func() time.Time
}

// Timeouts bound the waits for one answer. A zero is the default.
type Timeouts struct {
	// FirstByte bounds the time without a byte until the first event of the answer,
	// BetweenBytes that after it. Keep-alive comments are bytes.
	FirstByte, BetweenBytes time.Duration
	// Total bounds the whole call, even if the endpoint sends keep-alives.
	Total time.Duration
}

// TimeoutsOf returns the Timeouts that a Model sets.
func TimeoutsOf(t task.ModelTimeouts) Timeouts {
	return Timeouts{
		FirstByte:    time.Duration(t.FirstByteSeconds) * time.Second,
		BetweenBytes: time.Duration(t.BetweenBytesSeconds) * time.Second,
		Total:        time.Duration(t.TotalSeconds) * time.Second,
	}
}
