package openai

import (
	"cmp"
	"context"
	"iter"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
)

// Options say which model answers, where, and how long to wait for it. Endpoint is
// the base URL, up to and including /v1; most providers have a default.
type Options = httpapi.Options

// New returns a Model behind an endpoint of the chat completions API.
func New(o Options) (model.Model, error) {
	d, err := httpapi.Dialect(o, dialects)
	if err != nil {
		return nil, err
	}
	if o.APIVersion != "" && d.withAPIVersion != nil {
		d = *d.withAPIVersion
	}
	base, query, err := d.address(o)
	if err != nil {
		return nil, err
	}
	endpoint := httpapi.New(o, cmp.Or(d.idle, httpapi.IdleHosted), d.keyHeaders())
	return &client{Options: o, dialect: d, base: base, query: query, endpoint: endpoint}, nil
}

// A client is a Model.
type client struct {
	Options
	dialect  dialect
	base     string
	query    string
	endpoint *httpapi.Client
	repairs  httpapi.RepairLog
}

// Stream sends one request. If the stream breaks, an estimated Usage precedes the error.
func (c *client) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return c.endpoint.Join(func(yield func(model.Delta, error) bool) {
		x := &exchange{client: c, Call: c.endpoint.Begin(ctx), req: req}
		defer x.close()
		a, wanted := &answer{}, true
		receive := func() error {
			*a = answer{exchange: x, dialect: c.dialect}
			if a.cause = x.open(); a.cause == nil {
				wanted, a.cause = x.answer.Relay(a, yield)
			}
			return a.refusal()
		}
		ok, _ := c.repairs.Send(x.Call, receive, func(d model.Delta) bool { return yield(d, nil) }) // a has the error
		if !ok || !wanted {
			return
		}
		a.emitEnd(model.EstimateInput(req), yield)
	})
}
