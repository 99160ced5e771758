// Package provider says which model answers, where, and how long to wait for it: the options that the
// adapters of providers share (packages openai and anthropic).
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

// Options say which model answers, where, and how long to wait for it.
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
	// Model is the name by which the provider knows the model.
	Model string
	// Endpoint is the base URL. Most providers have a default.
	Endpoint string
	// Deployment is the name that Azure knows the model by, if it is another.
	// APIVersion, a date, is for an Azure resource that lacks the newer API. Other
	// providers have neither.
	Deployment, APIVersion string
	// Headers are sent with each request, over those of the API.
	Headers map[string]string
	// NoRepair says that a refused request is not sent again with a change.
	NoRepair bool
	// Key is asked before each request, because Secrets rotate, and sent in the header of
	// the provider. Nil or an empty key sends none.
	Key func() (string, error)
	// Sign authenticates a request in place of Key. It is called for each request when all
	// other headers are set, and GetBody of the request returns its body. What it adds to the
	// headers is quoted in no message. An error is that the credential cannot be read.
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
	// Total bounds the whole call, so that keep-alives alone end too.
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
