package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/address"
	"github.com/deckhand-dev/deckhand/runner/internal/callreport"
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
