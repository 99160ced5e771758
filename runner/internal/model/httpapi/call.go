package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/deckhand-dev/deckhand/runner/model"
)

// errCallEnded is the cause with which the end of a Call cancels its request.
var errCallEnded = errors.New("the call is over")

// A Call is one call of a model: one or several requests with one timeout.
type Call struct {
	// Sent describes the last request.
	Sent Sent

	client *Client
	ctx    context.Context // the caller's
	call   context.Context // this call's, ended by a timeout
	cancel context.CancelCauseFunc
	stop   context.CancelFunc
	// secrets are the credentials of the last request.
	secrets []string
	answer  *Answer // to the last request; nil: none

	asked       string // the address of the last request
	status      int    // of the last answer; 0: there was none
	contentType string // of the last answer
	failure     error  // an error that the endpoint sent
}

// Begin starts the timeout; it sends nothing. End must follow.
func (c *Client) Begin(ctx context.Context) *Call {
	x := &Call{client: c, ctx: ctx}
	total := &model.TimeoutError{Field: model.TimeoutTotal, After: c.Timeouts.Total}
	call, stop := context.WithTimeoutCause(ctx, total.After, total)
	x.call, x.cancel = context.WithCancelCause(call)
	x.stop = stop
	return x
}

// End closes the answer, cancels the call and releases its resources.
func (c *Call) End() {
	c.closeAnswer()
	c.cancel(errCallEnded)
	c.stop()
}

func (c *Call) closeAnswer() {
	if c.answer != nil {
		_ = c.answer.body.Close() // nothing is lost with it
		c.answer = nil
	}
}

// Context ends with the call. Requests of the call are made with it.
func (c *Call) Context() context.Context { return c.call }

// Send authenticates and sends a request, with the headers of the Options over its own, and
// returns an Answer only if it is a stream of events or a JSON document.
// Anything else is one of the model's errors. The Answer lasts until the next Send, or End.
func (c *Call) Send(req *http.Request) (*Answer, error) {
	c.closeAnswer()
	c.client.setHeaders(req)
	c.failure, c.status = nil, 0
	if err := c.sign(req); err != nil {
		return nil, err
	}
	c.asked = c.address(req)
	wait := startIdleTimer(&model.TimeoutError{Field: model.TimeoutFirstByte, After: c.client.Timeouts.FirstByte}, c.cancel)
	resp, err := c.client.http.Load().Do(req) //nolint:bodyclose // the Answer closes it
	wait.stop()
	if err != nil {
		return nil, c.unreachable(err)
	}
	c.status, c.contentType = resp.StatusCode, resp.Header.Get("Content-Type")
	body := &idleTimeoutBody{in: resp.Body, timer: wait, left: maxAnswer, tooLong: c.final("it sent more than 32 MiB")}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer body.Close()
		return nil, c.statusError(resp, body)
	}
	answer, err := c.detect(body)
	if err != nil {
		body.Close() //nolint:errcheck // nothing is lost with it
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{answer.in, body}
	answer.Response = resp
	c.answer = answer
	return answer, nil
}

// unreachable returns the error for a request without a response.
func (c *Call) unreachable(err error) error {
	if ended := c.ctx.Err(); ended != nil {
		return fmt.Errorf("asking the model: %w", ended)
	}
	if timeout := c.timeout(); timeout != nil {
		return &model.IncompleteError{Cause: timeout}
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // without the URL
	}
	if final := c.untrusted(err); final != nil {
		return final
	}
	return &model.UnavailableError{Message: c.Clean(err).Error()}
}

// Broken returns the error that ended an answer, if cause is not just the end of
// the stream or of the connection: an error that the endpoint sent, an answer that
// is not a model's, or the end of the caller's context.
func (c *Call) Broken(cause error) error {
	notAModel, isNotAModel := errors.AsType[*model.NotAModelError](cause)
	incomplete, isIncomplete := errors.AsType[*model.IncompleteError](cause)
	switch {
	case c.failure != nil:
		return c.failure
	case isNotAModel:
		return notAModel
	case !errors.Is(cause, ErrEnd) && c.ctx.Err() != nil:
		return fmt.Errorf("reading the model's answer: %w", c.ctx.Err())
	case isIncomplete:
		return incomplete
	}
	return nil
}

// fellSilent reports whether the call ended because no more bytes arrived.
func (c *Call) fellSilent() bool {
	timeout := c.timeout()
	return timeout != nil && timeout.Field != model.TimeoutTotal
}

// Interrupted returns the error for an answer that ended before it was complete.
func (c *Call) Interrupted(cause error) error {
	if err := c.Broken(cause); err != nil {
		return err
	}
	if errors.Is(cause, ErrEnd) {
		return &model.IncompleteError{}
	}
	if timeout := c.timeout(); timeout != nil {
		return &model.IncompleteError{Cause: timeout}
	}
	return &model.IncompleteError{Cause: c.Clean(cause)}
}

// timeout returns the timeout that ended the call, or nil.
func (c *Call) timeout() *model.TimeoutError {
	timeout, _ := errors.AsType[*model.TimeoutError](context.Cause(c.call))
	return timeout
}

// Clean returns an error with the text of err, without secrets. It never wraps an error of
// a context, which would look like the end of the caller's context.
func (c *Call) Clean(err error) error {
	if cause := context.Cause(c.call); cause != nil {
		err = cause
	}
	return errors.New(c.printable(err.Error()))
}

// final returns the error for an answer that a retry would not change.
func (c *Call) final(message string) *model.NotAModelError {
	err := c.NotAModel(message)
	err.Final = true
	return err
}

// NotAModel returns the error for a response that is not an answer of a model.
func (c *Call) NotAModel(message string) *model.NotAModelError {
	if page, ok := pageText(message); ok {
		message = page
	}
	contentType := c.printable(c.contentType)
	if contentType == "" {
		contentType = "without a content type"
	}
	return &model.NotAModelError{ContentType: contentType, Message: c.printable(message), Asked: c.asked}
}

// maxAnswer bounds the bytes of one answer.
const maxAnswer = 32 << 20

// idleTimer ends the call when a wait lasts too long.
type idleTimer struct {
	limit atomic.Pointer[model.TimeoutError]
	timer *time.Timer
}

// startIdleTimer returns a running timer.
func startIdleTimer(limit *model.TimeoutError, cancel context.CancelCauseFunc) *idleTimer {
	t := &idleTimer{}
	t.limit.Store(limit)
	t.timer = time.AfterFunc(limit.After, func() { cancel(t.limit.Load()) })
	return t
}

func (t *idleTimer) start() { t.timer.Reset(t.limit.Load().After) }
func (t *idleTimer) stop()  { t.timer.Stop() }

// idleTimeoutBody bounds the idle time and the size of a response. Only the time inside Read
// counts.
type idleTimeoutBody struct {
	in      io.ReadCloser
	timer   *idleTimer
	left    int64
	tooLong error
}

func (b *idleTimeoutBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.tooLong
	}
	b.timer.start()
	n, err := b.in.Read(p[:min(int64(len(p)), b.left)])
	b.timer.stop()
	b.left -= int64(n)
	return n, err
}

func (b *idleTimeoutBody) Close() error { return b.in.Close() }

// required are the fields of a body that no request lacks.
var required = []string{"model", "messages", "tools", "stream", "system", "input", "instructions", "anthropic_version"}

// The settings of a Model or an Agent.
const (
	SettingOutput      = "inference.maxOutputTokens"
	SettingTemperature = "inference.temperature"
	SettingTopP        = "inference.topP"
	SettingReasoning   = "inference.reasoning"
	settingExtra       = "inference.extra."
)

// Sent describes a request, so that a refusal can be traced to a part of it.
type Sent struct {
	// Model is the name of the model. Tools are the names of the tools, in their order.
	Model string
	Tools []string
	// Settings holds the fields of the body that a provider may refuse, with the setting of a
	// Model or an Agent that each comes from; empty: the adapter adds the field by itself.
	Settings map[string]string
	// MessageFields are the fields that the adapter adds to messages and that not every provider knows.
	MessageFields []string
	// EchoesReasoning reports whether reasoning can be sent with each earlier answer.
	EchoesReasoning bool
	// OutputField is the field that bounds the answer, MaxOutput its value in tokens; 0: the
	// request has none.
	OutputField string
	MaxOutput   int64
	// Input is the estimated size of the request, in tokens.
	Input int64
}

// NewSent describes a request with a body. settings maps fields to the settings that they come from; fields of extra
// parameters are added.
func NewSent(req *model.Request, body map[string]any, settings map[string]string) Sent {
	s := Sent{Settings: map[string]string{}, Input: model.EstimateInput(req)}
	s.Model, _ = body["model"].(string)
	for _, t := range req.Tools {
		s.Tools = append(s.Tools, t.Name)
	}
	var extra map[string]json.RawMessage
	_ = json.Unmarshal(req.Params.Extra, &extra) // merged into the body before
	for field := range body {
		if slices.Contains(required, field) {
			continue
		}
		s.Settings[field] = settings[field]
		if _, ok := extra[field]; ok {
			s.Settings[field] = settingExtra + field
		}
	}
	return s
}

// Fields returns the names of the fields of a patch, each with the setting that it comes from.
func Fields(patch, setting string) map[string]string {
	fields := map[string]any{}
	_ = Merge(fields, patch) // merged into the body before
	named := map[string]string{}
	for field := range maps.Keys(fields) {
		named[field] = setting
	}
	return named
}
