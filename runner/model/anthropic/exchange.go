package anthropic

import (
	"context"
	"encoding/json"
	"net/http"

	anthropic "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
)

// version is the version of the wire that is spoken here.
const version = "2023-06-01"

// An exchange is a request and its answer, with those that an answer that
// pauses leads to: the HTTP client below the official one.
type exchange struct {
	*client
	*httpapi.Call
	req  *model.Request
	said []json.RawMessage // before a pause, as it came

	answer *httpapi.Answer
	err    error // why there is none
}

// exchange prepares a request; nothing is sent yet.
func (c *client) exchange(ctx context.Context, req *model.Request) (*exchange, error) {
	call, err := c.endpoint.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &exchange{client: c, Call: call, req: req}, nil
}

// ask sends the request. Where the provider does not take back its own thinking
// any more, it is sent once again without.
func (x *exchange) ask() error {
	err := x.post()
	if isThinkingRefused(err) && x.refused.add(x.req) {
		err = x.post()
	}
	return err
}

func (x *exchange) post() error {
	body, err := x.body(x.req, x.said)
	if err != nil {
		return &model.BadRequestError{Message: err.Error()}
	}
	// Made by hand, because the constructor reads keys from the environment.
	official := anthropic.Client{Options: []option.RequestOption{
		option.WithBaseURL(x.base + "/"), option.WithHTTPClient(x), option.WithMaxRetries(0),
	}}
	x.answer, x.err = nil, nil
	var resp *http.Response
	err = official.Post(x.Context(), "v1/messages", body, &resp)
	switch {
	case x.err != nil:
		return x.err // as it was; the client's own may stand for it
	case err != nil:
		return x.Interrupted(err)
	}
	return nil
}

// Do sends the request and returns an answer only if it looks like one.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "Anthropic-Version": {version}}
	req.URL.RawQuery = x.query
	if key := x.Secret(); key != "" {
		for name, prefix := range x.dialect.auth {
			req.Header.Set(name, prefix+key)
		}
	}
	x.answer, x.err = x.Send(req)
	if x.err != nil {
		return nil, x.err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: req, Body: http.NoBody}, nil
}
