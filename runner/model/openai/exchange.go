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
func (x *exchange) open() error {
	x.request = x.client.request(x.req)
	config := openai.DefaultConfig("") // the Call authenticates
	config.BaseURL = x.base
	config.HTTPClient = x
	// The stream is read from x.answer: the library's own reader drops reasoning and
	// costs, and takes a stream that broke off for a whole answer.
	_, err := openai.NewClientWithConfig(config).CreateChatCompletionStream(x.Context(), x.request.library)
	if err != nil && x.err == nil {
		return &model.BadRequestError{Message: x.Clean(err).Error()} // the library sent nothing
	}
	return err
}

// Do implements [openai.HTTPDoer].
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	if x.err = x.complete(req); x.err == nil {
		x.answer, x.err = x.Send(req)
	}
	if x.err != nil {
		return nil, x.err
	}
	return x.answer.Response, nil
}

// complete adds to the library's request the fields that its types lack, and the query.
func (x *exchange) complete(req *http.Request) error {
	written, err := io.ReadAll(req.Body)
	if err != nil {
		return &model.BadRequestError{Message: err.Error()} // of memory: cannot fail
	}
	body, err := x.body(written)
	if err != nil {
		return &model.BadRequestError{Message: err.Error()}
	}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, _ = req.GetBody()
	req.ContentLength = int64(len(body))
	req.URL.RawQuery = x.query
	return nil
}

// body returns the body of the request, and keeps a description of it.
func (x *exchange) body(written []byte) ([]byte, error) {
	body, err := x.request.complete(written)
	if err != nil {
		return nil, err
	}
	field, limit := x.repairs.Now().Apply(body, x.dialect.maxTokens)
	x.request.settings[field] = httpapi.SettingOutput
	x.Sent = httpapi.NewSent(x.req, body, x.request.settings)
	x.Sent.OutputField, x.Sent.MaxOutput, x.Sent.EchoesReasoning = field, limit, true
	x.Sent.MessageFields = x.request.messageFields
	return httpapi.Encode(body)
}
