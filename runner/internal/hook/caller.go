package hook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/dialerror"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

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
