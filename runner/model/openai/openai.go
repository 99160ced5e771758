package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/deckhand-dev/deckhand/runner/model"
)

// The providers that this package speaks to, as Model.spec.provider names them.
const (
	ProviderOpenAI           = "OpenAI"
	ProviderOpenAICompatible = "OpenAICompatible"
)

// How patient a Model is unless Options say otherwise.
const (
	DefaultIdleTimeout = 2 * time.Minute
	DefaultCallTimeout = 15 * time.Minute
)

// maxHeader bounds the header of an answer.
const maxHeader = 256 << 10

// Options say which model answers, where, and for how long it is waited for.
type Options struct {
	// Provider is ProviderOpenAI or ProviderOpenAICompatible.
	Provider string
	// Name is the name under which steps record this model. Thinking recorded
	// under another name is not sent; empty sends all of it.
	Name string
	// Model is the name by which the provider knows the model.
	Model string
	// Endpoint is the base URL, up to and including /v1. OpenAI has a default.
	Endpoint string
	// Headers are sent with each request, over our own.
	Headers map[string]string
	// Key is asked before each request, because Secrets rotate. Nil or an empty
	// key sends no Authorization.
	Key func() (string, error)
	// IdleTimeout bounds the time without a byte, CallTimeout the whole call.
	IdleTimeout, CallTimeout time.Duration
	// Transport and Now replace the network and the clock; both may be nil.
	Transport http.RoundTripper
	Now       func() time.Time
}

// KeyFile reads a key from a file each time it is asked, so that a rotated
// Secret is used at once.
func KeyFile(path string) func() (string, error) {
	return func() (string, error) {
		data, err := os.ReadFile(path)
		return strings.TrimSpace(string(data)), err
	}
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
	endpoint, query, err := parseEndpoint(cmp.Or(o.Endpoint, d.endpoint))
	if err != nil {
		return nil, err
	}
	o.IdleTimeout = cmp.Or(o.IdleTimeout, DefaultIdleTimeout)
	o.CallTimeout = cmp.Or(o.CallTimeout, DefaultCallTimeout)
	if o.Transport == nil {
		o.Transport = transport()
	}
	if o.Now == nil {
		o.Now = clock
	}
	return &client{Options: o, dialect: d, endpoint: endpoint, query: query, http: &http.Client{
		Transport:     o.Transport,
		CheckRedirect: stay,
	}}, nil
}

// parseEndpoint splits an endpoint into what the path is appended to and a query.
func parseEndpoint(endpoint string) (base, query string, err error) {
	if endpoint == "" {
		return "", "", errors.New("the endpoint is empty: write one such as http://ollama:11434/v1")
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", "", errors.New("the endpoint is not a URL") // url's own error would quote it, password included
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", "", fmt.Errorf("endpoint %q is not a http or https URL", u.Redacted())
	case u.User != nil:
		return "", "", errors.New("the endpoint holds a credential: put it into a Secret")
	}
	query = u.RawQuery
	u.RawQuery, u.Fragment = "", ""
	return strings.TrimSuffix(strings.TrimRight(u.String(), "/"), "/chat/completions"), query, nil
}

// transport is the standard one with less trust in headers.
func transport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport // somebody's own, who knows what is in it
	}
	t = t.Clone()
	t.MaxResponseHeaderBytes = maxHeader
	return t
}

// stay follows no redirect: it would take the key and the session elsewhere.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// A client is a Model.
type client struct {
	Options
	dialect  dialect
	endpoint string
	query    string
	http     *http.Client
}

// Stream asks the model once. What a call that broke off had cost is reported
// by estimate, as a Usage before the error.
func (c *client) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		x, err := c.exchange(ctx, req)
		if err != nil {
			yield(model.Delta{}, err)
			return
		}
		defer x.end()
		a := &answer{exchange: x, dialect: c.dialect}
		stream, err := x.open()
		switch {
		case err == nil:
			defer stream.Close()
			if !relay(a, stream, yield) {
				return
			}
		case began(err):
			a.cause = err
		default:
			yield(model.Delta{}, err)
			return
		}
		a.conclude(model.EstimateInput(req), yield)
	}
}

// began reports whether the model had begun to answer before the error, so
// that tokens are spent.
func began(err error) bool {
	_, incomplete := errors.AsType[*model.IncompleteError](err)
	return incomplete
}

// relay yields the deltas of a stream until it ends, and tells whether anybody
// still listens.
func relay(a *answer, stream *openai.ChatCompletionStream, yield func(model.Delta, error) bool) bool {
	for {
		raw, err := stream.RecvRaw()
		if err == nil {
			err = a.read(raw)
		} else if errors.Is(err, io.EOF) {
			err = errEnd
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
