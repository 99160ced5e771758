// Package responses calls models over OpenAI's Responses API. Package openai chooses it.
//
// Nothing is stored at the provider (store is false, and no request names an earlier response): the session is sent
// whole, with the unchanged items of earlier answers. The provider refuses items that it could have in its store, and
// items out of their order:
//
//   - no item has an id. A reasoning item is its encrypted content and its summary;
//   - a reasoning item is never sent without the item that followed it;
//   - the phase of a message stays with it;
//   - a call has the id that the provider gave it, unless another Model made it.
//
// Data of an item without a field in package step is the Part.Provider of its part (partData, and for reasoning the
// item itself). Items of tools that the provider runs by itself are not sent back, nor is the reasoning that led to
// them.
//
// The types of go-openai lose the encrypted content of reasoning and the phase of messages, so this package has its own
// types for requests and answers.
package responses

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
)

// A Config configures the model and the differences of its provider.
type Config struct {
	provider.Options
	// Base is the URL above /responses, Query the query of its requests.
	Base, Query string
	// Model is the endpoint's name of the model.
	Model string
	// Idle is the default of the waits for an answer.
	Idle time.Duration
	// KeyHeaders are the headers of a key, with the prefix of each.
	KeyHeaders map[string]string
	// CacheKey reports whether prompt_cache_key is sent.
	CacheKey bool
	// Verbatim reports whether arguments that are not JSON are sent as the model wrote them, so
	// that it sees its mistake. Some servers parse them and would refuse the session.
	Verbatim bool
	// Files are the provider's limits of images and documents.
	Files httpapi.FileLimits
	// IsSampled reports whether temperature and top_p are sent at a level of reasoning.
	IsSampled func(model.Reasoning) bool
}

// New returns a Model behind an endpoint of the Responses API.
func New(c Config) model.Model {
	return &client{Config: c, endpoint: httpapi.New(c.Options, c.Idle, c.KeyHeaders), files: httpapi.FileLog{Limits: c.Files}}
}

// A client is a Model.
type client struct {
	Config
	endpoint *httpapi.Client
	repairs  httpapi.RepairLog
	refused  httpapi.RefusedReasoning
	files    httpapi.FileLog
}

// Stream sends one request. If the stream breaks, an estimated Usage precedes the error.
func (c *client) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return c.endpoint.Join(func(yield func(model.Delta, error) bool) {
		x := &exchange{client: c, Call: c.endpoint.Begin(ctx), req: req}
		defer x.End()
		a, wanted := &answer{}, true
		receive := func() error {
			*a = answer{exchange: x}
			if a.cause = x.send(); a.cause == nil {
				wanted, a.cause = x.answer.Relay(a, yield)
			}
			return a.refusal()
		}
		if x.repeat(receive, func(d model.Delta) bool { return yield(d, nil) }) && wanted {
			a.emitEnd(yield)
		}
	})
}

// An exchange is one request and its answer.
type exchange struct {
	*client
	*httpapi.Call
	req *model.Request

	answer *httpapi.Answer // nil if there is none
}

// repeat receives an answer. If the provider refuses the reasoning of earlier answers, the request is sent once more
// without it, and likewise for files and for the changes of RepairLog. report is called before each further request;
// wanted is false if it returns false.
func (e *exchange) repeat(receive func() error, report func(model.Delta) bool) (wanted bool) {
	wanted, _ = e.files.Send(e.Call, e.req, func() (bool, error) { // the answer has the error
		wanted, err := e.repairs.Send(e.Call, receive, report)
		if !wanted || !isReasoningRefused(err) || e.NoRepair || !e.refused.Add(e.req) {
			return wanted, err
		}
		repair := &model.Repair{Kind: model.RepairReasoning, Change: "reasoning of earlier answers is not sent"}
		if !report(model.Delta{Repair: repair, Because: err.Error()}) {
			return false, nil
		}
		return e.repairs.Send(e.Call, receive, report)
	}, report)
	return wanted
}

// aboutReasoningItem matches messages about a reasoning item of the input that cannot be decrypted, because the key or
// the Model behind it changed, or that is at a wrong position.
var aboutReasoningItem = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)encrypted[ _]content|of type ['"\x60]?reasoning|reasoning['"\x60]? item|item.* not persisted`)
})

// isReasoningRefused reports whether an error means that the provider refused reasoning of an
// earlier answer.
func isReasoningRefused(err error) bool {
	bad, ok := errors.AsType[*model.BadRequestError](err)
	refused := ok && (bad.Status == http.StatusBadRequest || bad.Status == http.StatusNotFound)
	return refused && aboutReasoningItem().MatchString(bad.Message)
}

// send sends the request.
func (e *exchange) send() error {
	body, err := e.body()
	if err != nil {
		return &model.BadRequestError{Message: err.Error()}
	}
	req, err := http.NewRequestWithContext(e.Context(), http.MethodPost, e.Base+"/responses", bytes.NewReader(body))
	if err != nil {
		return &model.BadRequestError{Message: e.Clean(err).Error()}
	}
	req.URL.RawQuery = e.Query
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	e.answer, err = e.Send(req)
	return err
}
