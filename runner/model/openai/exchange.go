package openai

import (
	"bytes"
	"context"
	"io"
	"net/http"

	openai "github.com/sashabaranov/go-openai"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
)

// An exchange is one request and its answer: the HTTPDoer below the client
// library. It sends our body in place of the library's and keeps the answer for
// ourselves to read; what is no answer it turns into one of the model's errors.
type exchange struct {
	*client
	*httpapi.Call
	body []byte

	answer *httpapi.Answer // nil if there is none
}

// exchange prepares a request; nothing is sent yet.
func (c *client) exchange(ctx context.Context, req *model.Request) (*exchange, error) {
	body, err := c.body(req)
	if err != nil {
		return nil, &model.BadRequestError{Message: err.Error()}
	}
	call, err := c.endpoint.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &exchange{client: c, Call: call, body: body}, nil
}

// open sends the request. Whatever it returns, close must follow.
func (x *exchange) open() error {
	config := openai.DefaultConfig(x.Secret())
	config.BaseURL = x.base
	config.HTTPClient = x
	// The library's own request stays empty: our body replaces it, and its checks
	// by the model's name would refuse models of other providers. Its stream stays
	// unread: it loses what providers add, and much time.
	library := openai.NewClientWithConfig(config)
	_, err := library.CreateChatCompletionStream(x.Context(), openai.ChatCompletionRequest{})
	return err
}

// close hangs up and releases what the exchange holds.
func (x *exchange) close() {
	if x.answer != nil {
		_ = x.answer.Close() // nothing is lost with it
	}
	x.End()
}

// Do sends the request and keeps its answer, if it is one of a model.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	x.fill(req)
	answer, err := x.Send(req)
	if err != nil {
		return nil, err
	}
	x.answer = answer
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: req, Body: http.NoBody}, nil
}

// fill puts our body, query and key on the library's request.
func (x *exchange) fill(req *http.Request) {
	body := x.body
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, _ = req.GetBody()
	req.ContentLength = int64(len(body))
	req.URL.RawQuery = x.query
	if name := x.dialect.keyHeader; name != "" && x.Secret() != "" {
		req.Header.Del("Authorization")
		req.Header.Set(name, x.Secret())
	}
}
