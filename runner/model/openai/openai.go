// Package openai calls models over the chat completions API: those of OpenAI itself and of the many servers that
// imitate it. Options.API chooses OpenAI's Responses API, which internal/responses has.
//
// Reading is liberal and the same for all; writing is strict, and differences between providers are rows of data
// (dialects.go). To add a provider, add a row, a golden file of what it is sent, and its recordings.
//
// The client library writes, addresses and sends the request. Its HTTP client (exchange) adds the fields to the body
// that the library's types lack, and this package reads the answer itself, because the library's stream drops fields
// that providers add:
//
//	Request ─ request ─▶ go-openai ─▶ exchange ─▶ endpoint
//	                                     │ statuses, web pages, redirects → typed errors
//	                                     │ silence and size are bounded
//	                                     ▼
//	                                  httpapi   stream or document → events
//	                                     ▼
//	                                  answer    events → Deltas, or why there is no answer
//
// The endpoint is not trusted: nothing it does may block the caller, grow its memory without bound, or bring the key
// into a message.
package openai

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"

	openai "github.com/sashabaranov/go-openai"

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

// An exchange is one request and its answer. It is the HTTP client of the client library: it completes the body that
// the library wrote, and turns any other response than an answer into an error of package model.
type exchange struct {
	*client
	*httpapi.Call
	req     *model.Request
	request *request

	answer *httpapi.Answer // nil if there is none
	err    error           // why there is none
}

// open sends the request.
func (e *exchange) open() error {
	e.request = e.client.request(e.req)
	config := openai.DefaultConfig("") // the Call authenticates
	config.BaseURL = e.base
	config.HTTPClient = e
	// The stream is read from x.answer: the library's own reader drops reasoning and
	// costs, and takes a stream that broke off for a whole answer.
	_, err := openai.NewClientWithConfig(config).CreateChatCompletionStream(e.Context(), e.request.library)
	if err != nil && e.err == nil {
		return &model.BadRequestError{Message: e.Clean(err).Error()} // the library sent nothing
	}
	return err
}

// Do implements [openai.HTTPDoer].
func (e *exchange) Do(req *http.Request) (*http.Response, error) {
	if e.err = e.complete(req); e.err == nil {
		e.answer, e.err = e.Send(req)
	}
	if e.err != nil {
		return nil, e.err
	}
	return e.answer.Response, nil
}

// complete adds to the library's request the fields that its types lack, and the query.
func (e *exchange) complete(req *http.Request) error {
	written, err := io.ReadAll(req.Body)
	if err != nil {
		return &model.BadRequestError{Message: err.Error()} // of memory: cannot fail
	}
	body, err := e.body(written)
	if err != nil {
		return &model.BadRequestError{Message: err.Error()}
	}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, _ = req.GetBody()
	req.ContentLength = int64(len(body))
	req.URL.RawQuery = e.query
	return nil
}

// body returns the body of the request, and keeps a description of it.
func (e *exchange) body(written []byte) ([]byte, error) {
	body, err := e.request.complete(written)
	if err != nil {
		return nil, err
	}
	field, limit := e.repairs.Now().Apply(body, e.dialect.maxTokens)
	e.request.settings[field] = httpapi.SettingOutput
	e.Sent = httpapi.NewSent(e.req, body, e.request.settings)
	e.Sent.OutputField, e.Sent.MaxOutput, e.Sent.EchoesReasoning = field, limit, true
	e.Sent.MessageFields = e.request.messageFields
	return httpapi.Encode(body)
}

// chat is the path that the client library appends to a base.
const chat = "/chat/completions"

// response is the path of the Responses API below a base.
const response = "/responses"

// deployments is the path of the deployments of a resource of Azure.
const deployments = "/openai/deployments/"

// address returns the base URL of the API and its query. A Model may name
// the whole URL, or that of a deployment.
func (d *dialect) address(o Options) (base, query string, err error) {
	if o.Endpoint == "" && d.chatPath != chatPathDirect {
		return "", "", errors.New("the endpoint is empty: write your resource's, such as https://name.openai.azure.com")
	}
	base, query, err = httpapi.Parse(cmp.Or(o.Endpoint, d.endpoint))
	if err != nil {
		return "", "", err
	}
	whole := strings.HasSuffix(base, chat) || strings.HasSuffix(base, response) || strings.Contains(base, deployments)
	base = strings.TrimSuffix(strings.TrimSuffix(base, chat), response)
	if d.chatPath == chatPathDirect {
		return base, query, nil
	}
	if !whole {
		base = strings.TrimSuffix(strings.TrimSuffix(base, "/v1"), "/openai")
		base += d.path(o)
	}
	if o.APIVersion != "" && !strings.Contains(query, "api-version=") {
		query = strings.TrimPrefix(query+"&api-version="+url.QueryEscape(o.APIVersion), "&")
	}
	return base, query, nil
}

// path returns the path of Azure's API below the endpoint.
func (d *dialect) path(o Options) string {
	switch {
	case d.chatPath == chatPathVersionOne:
		return "/openai/v1"
	case o.API == provider.APIResponses: // the body names the deployment
		return "/openai"
	}
	return deployments + url.PathEscape(d.modelName(o))
}

// modelName returns the name by which the endpoint knows the model.
func (d *dialect) modelName(o Options) string {
	if d.chatPath == chatPathDirect {
		return o.Model
	}
	return cmp.Or(o.Deployment, o.Model)
}
