// Package hook calls users' services before and after the actions of an agent.
//
// A hook is an HTTP endpoint. It gets a POST with a JSON object about the action: always version, hook, point, run and
// scope, user where the Run has one, and besides
//
//	BeforeSession  prompt
//	AfterSession   reason, text
//	BeforeModel    step, messages: what is new since the model's last answer
//	AfterModel     step, text, calls
//	BeforeTool     id, name, args
//	AfterTool      id, name, args, result
//
// It answers with nothing (204, or 200 without a body), or with a JSON object: {"allow": false, "reason": "…"} forbids;
// at AfterSession there is nothing left to forbid. Otherwise it may change
//
//	BeforeSession  {"prompt": "…"}
//	BeforeModel    {"say": "…"}, added as a user's message
//	AfterModel     {"text": "…", "drop": [0]}: the text, and calls left out, by index
//	BeforeTool     {"args": {…}}, which must fit the tool
//	AfterTool      {"text": "…", "isError": true}
//
// Unknown fields are ignored. Hooks of one point are called in their order, each with the changes of the previous one.
// No hook is called twice about the same action.
//
// A hook fails if it does not answer in time, or answers with a status of 300 or more, or with an invalid or too large
// body. With task.Hook.Ignore the session continues; otherwise a call is not made, or its result is withheld, and at
// any other point the error is an [UnavailableError]. A hook whose host does not exist ends the attempt before the next
// model call, so that a misspelled host is noticed. What each hook did is recorded with the step.
package hook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/address"
	"github.com/deckhand-dev/deckhand/runner/internal/callreport"
	"github.com/deckhand-dev/deckhand/runner/internal/dialerror"
	"github.com/deckhand-dev/deckhand/runner/internal/httpclient"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Priority is the priority of the layer of hooks: inside the layers of the runner, outside the layers of a custom
// runner.
const Priority = 400

// The points at which hooks are called.
const (
	BeforeSession = "BeforeSession"
	AfterSession  = "AfterSession"
	BeforeModel   = "BeforeModel"
	AfterModel    = "AfterModel"
	BeforeTool    = "BeforeTool"
	AfterTool     = "AfterTool"
)

// Options are shared by all hooks of an agent. All but Run are optional.
type Options struct {
	// Run is the Run that is worked on.
	Run task.Run
	// User is the spec.user of the Run, or empty.
	User string
	// Key returns a function that reads a credential. It is called before each request, because Secrets rotate.
	Key func(task.SecretKey) func() (string, error)
	// Check validates arguments that a hook changed.
	Check func(name string, args json.RawMessage) error
	// Redact removes secrets from requests to hooks and from their answers.
	Redact func(string) string
	// Transport replaces the network.
	Transport http.RoundTripper
}

// An UnavailableError means that a required hook failed.
type UnavailableError struct {
	// Hook is the name of the hook, Point where it was called.
	Hook, Point string
	Cause       error
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("the hook %s could not be asked at %s: %v", e.Hook, e.Point, e.Cause)
}

// Unwrap returns the cause, and the end of the attempt if the hook was called for a session
// or a model call: the Run is retried.
func (e *UnavailableError) Unwrap() []error {
	return []error{e.Cause, task.End(task.ReasonToolUnavailable, "The hook %s could not be asked: %w; see whether its url answers, or set its failurePolicy to Ignore", e.Hook, e.Cause)}
}

// connectTimeout bounds how long a connection to a hook takes.
const connectTimeout = 30 * time.Second

// Layer returns the hooks of an agent as one layer. Functions without a hook are nil.
func Layer(hooks []task.Hook, o Options) middleware.Layer {
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	if o.Transport == nil {
		o.Transport = httpclient.Transport(address.DialContext(&net.Dialer{Timeout: connectTimeout}))
	}
	a := &caller{Options: o, hooks: map[string][]task.Hook{}, client: httpclient.New(o.Transport)}
	for _, h := range hooks {
		a.hooks[h.Point] = append(a.hooks[h.Point], h)
	}
	l := middleware.Layer{Name: "hooks", Priority: Priority}
	if a.any(BeforeSession) {
		l.Start = a.start
	}
	if a.any(AfterSession) {
		l.Stop = a.stop
	}
	if a.any(BeforeModel, AfterModel, BeforeTool, AfterTool) {
		l.Model = a.model
	}
	if a.any(BeforeTool, AfterTool) {
		l.Tool = a.tool
	}
	return l
}

// any reports whether a hook is called at one of the points.
func (c *caller) any(points ...string) bool {
	return slices.ContainsFunc(points, func(p string) bool { return len(c.hooks[p]) > 0 })
}

type beforeSession struct {
	requestHeader
	Prompt string `json:"prompt"`
}

type afterSession struct {
	requestHeader
	Reason string `json:"reason"`
	Text   string `json:"text"`
}

// start calls the hooks of BeforeSession.
func (c *caller) start(ctx context.Context, o *middleware.SessionStart) error {
	for _, h := range c.hooks[BeforeSession] {
		did, err := c.callHook(ctx, h, beforeSession{c.header(h, o.Scope), c.Redact(o.Prompt)}, func(answer []byte) (bool, error) {
			var change struct {
				Prompt *string `json:"prompt"`
			}
			if err := read(answer, &change); err != nil || change.Prompt == nil {
				return false, err
			}
			if *change.Prompt == "" {
				return false, errors.New("it answered an empty prompt")
			}
			o.Prompt = *change.Prompt
			return true, nil
		})
		callreport.AddHook(ctx, did)
		if err := vetoError(h, did, err); err != nil {
			return err
		}
	}
	return nil
}

// vetoError returns the error of a hook that denied.
func vetoError(h task.Hook, did step.Hook, err error) error {
	if err == nil && did.Did == step.HookVetoed {
		return &middleware.VetoError{By: "the hook " + h.Name, Reason: did.Reason}
	}
	return err
}

// stop calls all hooks of AfterSession.
func (c *caller) stop(ctx context.Context, end middleware.SessionEnd) error {
	var errs []error
	for _, h := range c.hooks[AfterSession] {
		question := afterSession{c.header(h, end.Scope), end.Reason, c.Redact(end.Text)}
		_, err := c.callHook(ctx, h, question, func([]byte) (bool, error) { return false, nil })
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

const (
	defaultTimeout = 5 * time.Second
	maxTimeout     = 30 * time.Second
	// maxAnswer bounds the answer of a hook, in bytes.
	maxAnswer = 256 << 10
)

// version is the version of requests to hooks. Within a version, fields are only added.
const version = 1

// A requestHeader is part of each request to a hook.
type requestHeader struct {
	Version int        `json:"version"`
	Hook    string     `json:"hook"`
	Point   string     `json:"point"`
	Run     task.Run   `json:"run"`
	User    string     `json:"user,omitempty"`
	Scope   step.Scope `json:"scope"`
}

// A decision is part of each answer of a hook.
type decision struct {
	Allow  *bool  `json:"allow"`
	Reason string `json:"reason"`
}

// A caller calls the hooks of one agent.
type caller struct {
	Options
	hooks  map[string][]task.Hook // by point
	client *http.Client
	// unreachable is the first failure of a hook whose host does not exist. Calls that the
	// model makes have failed by then and their results are recorded; the next model
	// call ends the attempt.
	unreachable atomic.Pointer[UnavailableError]
}

func (c *caller) header(h task.Hook, scope step.Scope) requestHeader {
	return requestHeader{Version: version, Hook: h.Name, Point: h.Point, Run: c.Run, User: c.User, Scope: scope}
}

// callHook calls one hook. If the hook allows, apply gets its answer; it returns whether the answer changes anything,
// or why it is invalid. callHook returns an error if a required hook failed, or the context ended.
func (c *caller) callHook(ctx context.Context, h task.Hook, request any, apply func(answer []byte) (bool, error)) (step.Hook, error) {
	did := step.Hook{Name: h.Name, Point: h.Point, Did: step.HookAllowed}
	answer, err := c.post(ctx, h, request)
	if ctx.Err() != nil {
		return did, context.Cause(ctx) // the hook did not fail
	}
	var v decision
	if err == nil && len(answer) > 0 {
		err = read(answer, &v)
	}
	did.Reason = c.redacted(v.Reason)
	switch {
	case err != nil:
	case v.Allow != nil && !*v.Allow:
		did.Did, did.Reason = step.HookVetoed, cmp.Or(did.Reason, "no reason was given")
	case len(answer) > 0:
		var changed bool
		if changed, err = apply(answer); changed && err == nil {
			did.Did = step.HookChanged
		}
	}
	if err == nil {
		return did, nil
	}
	did.Did, did.Reason = step.HookFailed, c.redacted(cmp.Or(dialerror.Cause(err), err.Error()))
	if h.Ignore {
		return did, nil
	}
	unavailable := &UnavailableError{Hook: h.Name, Point: h.Point, Cause: errors.New(did.Reason)}
	if dialerror.IsNoHost(err) {
		c.unreachable.CompareAndSwap(nil, unavailable)
	}
	return did, unavailable
}

// redacted returns a text of a hook without secrets, bounded.
func (c *caller) redacted(s string) string { return task.Cut(c.Redact(s), task.MaxMessage) }

// read decodes an answer, or a part of it.
func read(answer []byte, into any) error {
	if answer[0] != '{' {
		return errors.New("its answer is no JSON object")
	}
	err := json.Unmarshal(answer, into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("its answer makes no sense: %s cannot be of type %s", wrong.Field, wrong.Value)
	}
	if err != nil {
		return fmt.Errorf("its answer makes no sense: %w", err)
	}
	return nil
}

// post sends a request to a hook and returns its answer; nil if it is empty.
func (c *caller) post(ctx context.Context, h task.Hook, request any) ([]byte, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("writing what it is asked: %w", err)
	}
	timeout := hookTimeout(h)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("its url is no URL") // whose text may hold a secret
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if err := c.addCredential(req, h.SecretKey); err != nil {
		return nil, err
	}
	resp, err := c.client.Do(req)
	if err == nil {
		defer resp.Body.Close()
		var answer []byte
		if answer, err = readBody(resp); err == nil {
			return answer, nil
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("it did not answer within %s", timeout)
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // the rest is the URL
	}
	return nil, err
}

func hookTimeout(h task.Hook) time.Duration {
	if h.TimeoutSeconds <= 0 {
		return defaultTimeout
	}
	return min(time.Duration(min(h.TimeoutSeconds, 60))*time.Second, maxTimeout)
}

// addCredential adds the credential of a hook, if it has one.
func (c *caller) addCredential(req *http.Request, from task.SecretKey) error {
	if from.Secret == "" {
		return nil
	}
	if c.Key == nil {
		return fmt.Errorf("the key %s of the Secret %s cannot be read here", from.Key, from.Secret)
	}
	key, err := c.Key(from)()
	if err != nil {
		return fmt.Errorf("reading the key %s of the Secret %s: %w", from.Key, from.Secret, err)
	}
	if key == "" {
		return fmt.Errorf("the key %s of the Secret %s is empty", from.Key, from.Secret)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	return nil
}

// readBody returns the body of a successful answer.
func readBody(resp *http.Response) ([]byte, error) {
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return nil, fmt.Errorf("it answered with a redirect (HTTP %d), which is not followed", resp.StatusCode)
	case resp.StatusCode < 200 || resp.StatusCode >= 300:
		return nil, fmt.Errorf("it answered HTTP %d", resp.StatusCode)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("reading its answer: %w", err)
	}
	if len(answer) > maxAnswer {
		return nil, fmt.Errorf("its answer has more than %d bytes", maxAnswer)
	}
	return bytes.TrimSpace(answer), nil
}
