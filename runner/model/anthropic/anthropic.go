// Package anthropic calls models over the Messages API: those of Anthropic itself and of providers that offer the same
// API.
//
// Reading is liberal and the same for all; writing is strict, and differences between providers and models are rows of
// data (dialect, family).
//
//	Request ─ body ─▶ exchange ─▶ httpapi.Call ─▶ endpoint
//	                                │ statuses, web pages      → typed errors
//	                                ▼
//	                             httpapi  stream or document → events
//	                                ▼
//	                             answer   events → Deltas, or why there is no answer
//	                                │
//	                                └ pause_turn: asked again with what was said
//
// The official client is not used: it takes a stream that breaks off for a whole answer, and one with two messages for
// the second (docs/designs/009).
//
// Blocks of the provider's own tools are kept unchanged as separate parts. The citations of a text and the caller of a
// tool are the provider data of their part.
package anthropic

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
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

// version is the version of the API.
const version = "2023-06-01"

// An exchange is a request and its answer, and the further requests after an answer
// that pauses.
type exchange struct {
	*client
	*httpapi.Call
	req      *model.Request
	previous []json.RawMessage // the content before a pause

	answer *httpapi.Answer // nil if there is none
}

// send sends the request. If the provider refuses thinking of earlier answers, the request is sent once more without
// it, and likewise for files and for the changes of RepairLog. report is called before each further request; wanted is
// false if it returns false.
func (e *exchange) send(report func(model.Delta) bool) (wanted bool, err error) {
	return e.files.Send(e.Call, e.req, func() (bool, error) { return e.sendThinking(report) }, report)
}

// sendThinking sends the request, without thinking if that is refused.
func (e *exchange) sendThinking(report func(model.Delta) bool) (wanted bool, err error) {
	wanted, err = e.repairs.Send(e.Call, e.post, report)
	if !wanted || !isThinkingRefused(err) || e.endpoint.NoRepair || !e.refused.Add(e.req) {
		return wanted, err
	}
	repair := &model.Repair{Kind: model.RepairReasoning, Change: "thinking of earlier answers is not sent"}
	if !report(model.Delta{Repair: repair, Because: err.Error()}) {
		return false, nil
	}
	return e.repairs.Send(e.Call, e.post, report)
}

func (e *exchange) post() error {
	fields, err := e.body(e.req, e.previous)
	if err != nil {
		return &model.BadRequestError{Message: err.Error()}
	}
	e.describe(fields)
	body, err := encode(fields)
	if err != nil {
		return &model.BadRequestError{Message: err.Error()}
	}
	req, err := http.NewRequestWithContext(e.Context(), http.MethodPost, e.base+e.path(), bytes.NewReader(body))
	if err != nil {
		return &model.BadRequestError{Message: e.Clean(err).Error()}
	}
	req.URL.RawQuery = e.query
	req.Header.Set("Content-Type", "application/json")
	if e.dialect.invokes {
		req.Header.Set("Accept", httpapi.ContentFrames)
	} else {
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Anthropic-Version", version)
	}
	e.answer, err = e.Send(req)
	return err
}

// path returns the path of requests below the base.
func (c *client) path() string {
	if c.dialect.invokes {
		return invokePath(c.model)
	}
	return "/v1/messages"
}

// describe applies the repairs to a body and keeps a description of the request.
func (e *exchange) describe(body map[string]any) {
	repairs := e.repairs.Now()
	_, limit := repairs.Apply(body, fieldMaxTokens)
	e.Sent = httpapi.NewSent(e.req, body, map[string]string{
		fieldMaxTokens: httpapi.SettingOutput, "temperature": httpapi.SettingTemperature, "top_p": httpapi.SettingTopP,
		"thinking": httpapi.SettingReasoning, "output_config": httpapi.SettingReasoning,
	})
	e.Sent.Model = e.model
	e.Sent.OutputField, e.Sent.MaxOutput = fieldMaxTokens, limit
	e.Sent.EchoesReasoning = e.dialect.echo == echoReceived
	if e.dialect.cachesPrompt && !repairs.Dropped(fieldCacheControl) {
		e.Sent.MessageFields = []string{fieldCacheControl}
	}
}

// isThinkingRefused reports whether an error means that the provider refused thinking
// of an earlier answer.
func isThinkingRefused(err error) bool {
	bad, ok := errors.AsType[*model.BadRequestError](err)
	if !ok || bad.Status != http.StatusBadRequest {
		return false
	}
	message := strings.ToLower(bad.Message)
	for _, phrase := range []string{"signature", "bound to", "cannot be modified", "must start with a thinking block"} {
		if strings.Contains(message, "thinking") && strings.Contains(message, phrase) {
			return true
		}
	}
	return false
}
