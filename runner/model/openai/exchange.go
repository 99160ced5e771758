package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	openai "github.com/sashabaranov/go-openai"

	"github.com/deckhand-dev/deckhand/runner/model"
)

// tailTimeout is the idle time allowed once the answer said that it finished:
// only its usage and the end mark are missing then.
const tailTimeout = 5 * time.Second

// Why we hang up ourselves.
var (
	errCallTimeout = errors.New("the call took too long")
	errHungUp      = errors.New("the call is over")
)

// An exchange is one request and its answer: the HTTPDoer below the official
// client. It sends our body in place of the client's, and what it lets through
// is a clean stream; anything else it turns into one of the model's errors.
type exchange struct {
	*client
	ctx    context.Context // the caller's
	call   context.Context // this exchange's, ended by a timeout
	cancel context.CancelCauseFunc
	stop   context.CancelFunc
	key    string
	body   []byte

	contentType string
	answer      *patientBody
	events      *events // nil unless the answer is a stream of events
	document    bool    // the answer was not streamed
	failure     error   // told in the stream
}

// exchange prepares a request; nothing is sent yet.
func (c *client) exchange(ctx context.Context, req *model.Request) (*exchange, error) {
	body, err := c.body(req)
	if err != nil {
		return nil, &model.BadRequestError{Message: err.Error()}
	}
	x := &exchange{client: c, ctx: ctx, body: body}
	if c.Key != nil {
		if x.key, err = c.Key(); err != nil {
			return nil, &model.NoCredentialError{Message: err.Error()}
		}
		if strings.ContainsFunc(x.key, unicode.IsControl) {
			return nil, &model.UnauthorizedError{Message: "the key holds a character that no header may hold"}
		}
	}
	call, stop := context.WithTimeoutCause(ctx, c.CallTimeout, errCallTimeout)
	x.call, x.cancel = context.WithCancelCause(call)
	x.stop = stop
	return x, nil
}

// end releases what the exchange holds, and hangs up if it must.
func (x *exchange) end() {
	x.cancel(errHungUp)
	x.stop()
}

// open sends the request and returns its stream, if it is one.
func (x *exchange) open() (*openai.ChatCompletionStream, error) {
	config := openai.DefaultConfig(x.key)
	config.BaseURL = x.endpoint
	config.HTTPClient = x
	config.EmptyMessagesLimit = math.MaxUint // none is left when the client reads
	// The client's own request stays empty: our body replaces it, and its checks
	// by the model's name would refuse models of other providers.
	return openai.NewClientWithConfig(config).CreateChatCompletionStream(x.call, openai.ChatCompletionRequest{})
}

// Do sends the request and returns an answer only if it is a stream, or can be
// read as one.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	x.dress(req)
	wait := newPatience(x.IdleTimeout, x.cancel)
	resp, err := x.http.Do(req)
	wait.stop()
	if err != nil {
		return nil, x.unreachable(err)
	}
	x.contentType = resp.Header.Get("Content-Type")
	x.answer = &patientBody{in: resp.Body, patience: wait, left: maxAnswer, tooLong: x.notAModel("it sent more than 32 MiB")}
	resp.Body = x.answer
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		return nil, x.refusal(resp)
	}
	stream, err := x.stream(x.answer)
	if err != nil {
		resp.Body.Close() //nolint:errcheck // nothing is lost with it
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{stream, x.answer}
	return resp, nil
}

// dress puts our body, query and headers on the client's request.
func (x *exchange) dress(req *http.Request) {
	body := x.body
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, _ = req.GetBody()
	req.ContentLength = int64(len(body))
	req.URL.RawQuery = x.query
	req.Header.Set("User-Agent", "deckhand")
	for name, value := range x.Headers {
		req.Header.Set(name, value)
		if strings.EqualFold(name, "Host") {
			req.Host = value
		}
	}
}

// settle is called when the answer said that it finished.
func (x *exchange) settle() {
	x.answer.patience.idle = min(x.IdleTimeout, tailTimeout)
}

// whole reports whether the answer marked its own end.
func (x *exchange) whole() bool {
	return x.document || x.events != nil && x.events.done
}

// unreachable is the error for a request that got no answer.
func (x *exchange) unreachable(err error) error {
	if ended := x.ctx.Err(); ended != nil {
		return fmt.Errorf("asking the model: %w", ended)
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // without the URL
	}
	return &model.UnavailableError{Message: x.clean(err).Error()}
}

// broken is the error that stopped reading if it stands by itself: the end of
// the caller's context, or what the endpoint told.
func (x *exchange) broken(cause error) error {
	notAModel, ok := errors.AsType[*model.NotAModelError](cause)
	switch {
	case x.failure != nil:
		return x.failure
	case ok:
		return notAModel
	case !errors.Is(cause, errEnd) && x.ctx.Err() != nil:
		return fmt.Errorf("reading the model's answer: %w", x.ctx.Err())
	}
	return nil
}

// clean is why reading or sending failed, in words without the key, and never
// an error of a context: only the caller's own end is one.
func (x *exchange) clean(err error) error {
	if cause := context.Cause(x.call); cause != nil {
		err = cause
	}
	return errors.New(x.say(err.Error()))
}

// notAModel is the error for an answer that is none of a model.
func (x *exchange) notAModel(message string) *model.NotAModelError {
	contentType := x.say(x.contentType)
	if contentType == "" {
		contentType = "without a content type"
	}
	return &model.NotAModelError{ContentType: contentType, Message: x.say(message)}
}
