package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
)

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

// exchange prepares a request; nothing is sent yet.
func (c *client) exchange(ctx context.Context, req *model.Request) (*exchange, error) {
	call, err := c.endpoint.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &exchange{client: c, Call: call, req: req}, nil
}

// send sends the request. If the provider refuses thinking of earlier answers, it is sent
// once more without.
func (x *exchange) send() error {
	err := x.post()
	if isThinkingRefused(err) && x.refused.add(x.req) {
		err = x.post()
	}
	return err
}

func (x *exchange) post() error {
	body, err := x.body(x.req, x.previous)
	if err != nil {
		return &model.BadRequestError{Message: err.Error()}
	}
	req, err := http.NewRequestWithContext(x.Context(), http.MethodPost, x.base+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return &model.BadRequestError{Message: x.Clean(err).Error()}
	}
	req.URL.RawQuery = x.query
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Anthropic-Version", version)
	if key := x.Secret(); key != "" {
		for name, prefix := range x.dialect.auth {
			req.Header.Set(name, prefix+key)
		}
	}
	x.answer, err = x.Send(req)
	return err
}
