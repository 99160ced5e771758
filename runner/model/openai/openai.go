package openai

import (
	"cmp"
	"context"
	"fmt"
	"iter"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/openai/internal/responses"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
)

// Options configure a Model. Endpoint is the base URL, up to and including /v1; most providers have a default.
type Options = provider.Options

// New returns a Model behind an endpoint of the chat completions API or, if Options.API selects it, of the Responses
// API.
func New(o Options) (model.Model, error) {
	d, err := httpapi.Dialect(o, dialects)
	if err != nil {
		return nil, err
	}
	if o.APIVersion != "" && d.withAPIVersion != nil {
		d = *d.withAPIVersion
	}
	if err := d.checkAPI(o); err != nil {
		return nil, err
	}
	base, query, err := d.address(o)
	if err != nil {
		return nil, err
	}
	if o.API == provider.APIResponses {
		return responses.New(d.responses(o, base, query)), nil
	}
	endpoint := httpapi.New(o, cmp.Or(d.idle, httpapi.IdleHosted), d.keyHeaders())
	return &client{Options: o, dialect: d, base: base, query: query, endpoint: endpoint, files: httpapi.FileLog{Limits: d.files}}, nil
}

// checkAPI refuses an API that the provider does not have.
func (d *dialect) checkAPI(o Options) error {
	switch {
	case o.API == "", o.API == provider.APIChatCompletions, o.API == provider.APIResponses && d.hasResponses:
		return nil
	case d.hasResponses:
		return fmt.Errorf("the API %q is not one of %s, %s", o.API, provider.APIChatCompletions, provider.APIResponses)
	}
	return fmt.Errorf("provider %s does not have the API %q: it has %s", o.Provider, o.API, provider.APIChatCompletions)
}

// responses returns the settings of the provider for the Responses API.
func (d *dialect) responses(o Options, base, query string) responses.Config {
	return responses.Config{
		Options: o, Base: base, Query: query, Model: d.modelName(o), Idle: cmp.Or(d.idle, httpapi.IdleHosted),
		KeyHeaders: d.keyHeaders(), CacheKey: d.cacheKey != "", Verbatim: d.invalidArgs == argsVerbatim, Files: d.files,
		IsSampled: func(level model.Reasoning) bool { return d.sampled(o.Model, level) },
	}
}

// A client is a Model.
type client struct {
	Options
	dialect  dialect
	base     string
	query    string
	endpoint *httpapi.Client
	repairs  httpapi.RepairLog
	files    httpapi.FileLog
}

// Stream sends one request. If the stream breaks, an estimated Usage precedes the error.
func (c *client) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return c.endpoint.Join(func(yield func(model.Delta, error) bool) {
		x := &exchange{client: c, Call: c.endpoint.Begin(ctx), req: req}
		defer x.End()
		a, wanted := &answer{}, true
		receive := func() error {
			*a = answer{exchange: x, dialect: c.dialect}
			if a.cause = x.open(); a.cause == nil {
				wanted, a.cause = x.answer.Relay(a, yield)
			}
			return a.refusal()
		}
		report := func(d model.Delta) bool { return yield(d, nil) }
		send := func() (bool, error) { return c.repairs.Send(x.Call, receive, report) }
		ok, _ := c.files.Send(x.Call, req, send, report) // a has the error
		if !ok || !wanted {
			return
		}
		a.emitEnd(model.EstimateInput(req), yield)
	})
}
