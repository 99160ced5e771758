package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
)

// How patient a Model is unless Options say otherwise.
const (
	DefaultIdleTimeout = httpapi.DefaultIdleTimeout
	DefaultCallTimeout = httpapi.DefaultCallTimeout
)

// Options say which model answers, where, and for how long it is waited for.
type Options struct {
	// Provider is ProviderOpenAI or another of the constants.
	Provider string
	// Name is the name under which steps record this model. Thinking recorded
	// under another name is not sent; empty sends all of it.
	Name string
	// Model is the name by which the provider knows the model.
	Model string
	// Endpoint is the base URL, up to and including /v1. Most have a default.
	Endpoint string
	// Headers are sent with each request, over our own.
	Headers map[string]string
	// Key is asked before each request, because Secrets rotate. Nil or an empty
	// key sends none.
	Key func() (string, error)
	// IdleTimeout bounds the time without a byte, CallTimeout the whole call.
	IdleTimeout, CallTimeout time.Duration
	// Transport and Now replace the network and the clock; both may be nil.
	Transport http.RoundTripper
	Now       func() time.Time
	// Deployment is the name that Azure knows the model by, where it is another.
	// APIVersion, a date, is for an Azure resource that lacks the newer API.
	Deployment, APIVersion string
}

// New is a Model behind an endpoint that speaks chat completions.
func New(o Options) (model.Model, error) {
	d, ok := dialects[o.Provider]
	if !ok {
		return nil, fmt.Errorf("provider %q is not one of %s", o.Provider, strings.Join(providers(), ", "))
	}
	if o.Model == "" {
		return nil, errors.New("the model's name is empty")
	}
	if o.APIVersion != "" && d.dated != nil {
		d = *d.dated
	}
	base, query, err := d.address(o)
	if err != nil {
		return nil, err
	}
	return &client{Options: o, dialect: d, base: base, query: query, endpoint: httpapi.New(httpapi.Options{
		Headers: o.Headers, Key: o.Key, IdleTimeout: o.IdleTimeout, CallTimeout: o.CallTimeout, Transport: o.Transport, Now: o.Now,
	})}, nil
}

// A client is a Model.
type client struct {
	Options
	dialect  dialect
	base     string
	query    string
	endpoint *httpapi.Client
}

// Stream asks the model once. What a call that broke off had cost is reported
// by estimate, as a Usage before the error.
func (c *client) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return httpapi.Join(func(yield func(model.Delta, error) bool) {
		x, err := c.exchange(ctx, req)
		if err != nil {
			yield(model.Delta{}, err)
			return
		}
		defer x.close()
		a := &answer{exchange: x, dialect: c.dialect}
		chunks, err := x.open()
		switch {
		case err == nil:
			if !relay(a, chunks, yield) {
				return
			}
		case began(err):
			a.cause = err
		default:
			yield(model.Delta{}, err)
			return
		}
		a.conclude(model.EstimateInput(req), yield)
	})
}

// began reports whether the model had begun to answer before the error, so
// that tokens are spent.
func began(err error) bool {
	_, incomplete := errors.AsType[*model.IncompleteError](err)
	return incomplete
}

// relay yields the deltas of an answer until it ends, and tells whether anybody
// still listens.
func relay(a *answer, chunks source, yield func(model.Delta, error) bool) bool {
	for {
		raw, err := chunks.next()
		if err == nil {
			err = a.read(raw)
		} else if errors.Is(err, io.EOF) {
			err = httpapi.ErrEnd
		}
		for _, d := range a.take() {
			if !yield(d, nil) {
				return false
			}
		}
		if err != nil {
			a.cause = err
			return true
		}
	}
}
