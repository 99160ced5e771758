package openai

import (
	"bytes"
	"io"
	"net/http"

	openai "github.com/sashabaranov/go-openai"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
)

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
