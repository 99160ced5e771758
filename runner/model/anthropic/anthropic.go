package anthropic

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
)

// The providers that this package speaks to, as Model.spec.provider names them.
const (
	ProviderAnthropic           = "Anthropic"
	ProviderAnthropicCompatible = "AnthropicCompatible"
	ProviderDeepSeek            = "DeepSeek"
	ProviderKimi                = "Kimi"
	ProviderBedrock             = "Bedrock"
)

// Options configure a Model. Endpoint is the base URL, with or without /v1; all providers except AnthropicCompatible
// and Bedrock have a default.
type Options = provider.Options

// New returns a Model behind an endpoint of the Messages API.
func New(o Options) (model.Model, error) {
	d, err := httpapi.Dialect(o, dialects)
	if err != nil {
		return nil, err
	}
	if o.API != "" && o.API != provider.APIMessages {
		return nil, fmt.Errorf("provider %s does not have the API %q: it has %s", o.Provider, o.API, provider.APIMessages)
	}
	base, query, err := httpapi.Parse(cmp.Or(o.Endpoint, d.endpoint))
	if err != nil {
		return nil, err
	}
	base = strings.TrimSuffix(strings.TrimSuffix(base, "/messages"), "/v1")
	return &client{
		name: o.Name, model: o.Model, dialect: d, family: d.family(o.Model), base: base, query: query, endpoint: httpapi.New(o, cmp.Or(d.idle, httpapi.IdleHosted), d.auth),
		files: httpapi.FileLog{Limits: d.files},
	}, nil
}

// A client is a Model.
type client struct {
	name, model string
	dialect     dialect
	family      family
	base, query string
	endpoint    *httpapi.Client
	refused     httpapi.RefusedReasoning
	repairs     httpapi.RepairLog
	files       httpapi.FileLog
}

// maxPauses bounds how often a paused answer is continued.
const maxPauses = 8

// Stream sends one request, and another whenever the answer pauses; a Delta with
// Continued precedes each further request. If the stream breaks, an estimated Usage
// precedes the error.
func (c *client) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return c.endpoint.Join(func(yield func(model.Delta, error) bool) {
		x := &exchange{client: c, Call: c.endpoint.Begin(ctx), req: req}
		defer x.End()
		a := &answer{exchange: x}
		for a.receive(yield) {
			if a.pauses == maxPauses || !a.resume() {
				a.emitEnd(yield)
				return
			}
			spent := a.spent
			if !yield(model.Delta{Continued: true, Usage: &spent, Requests: slices.Clone(a.requests)}, nil) {
				return
			}
		}
	})
}
