package request

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/internal/shared/expr"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/auth"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/facts"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/toolname"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// Options are what the tools of a Toolset are made of.
type Options struct {
	// Client sends the requests. Nil: one that reaches everything but this machine,
	// its link and metadata services.
	Client *http.Client
	// Key reads a key of a Secret, each time anew.
	Key func(task.SecretKey) (string, error)
	// Learn is called with each secret that is sent, for the redactor. May be nil.
	Learn func(redact.Secret)
	// RunUID is the first half of the Idempotency-Key of requests that change
	// something; empty: none is sent.
	RunUID string
	// Traceparent makes the header traceparent of a call; nil: none is sent.
	Traceparent func(callID string) string
	// Now is the time; nil: that of the machine.
	Now func() time.Time
}

// defaultTimeout bounds a call where the Toolset does not.
const defaultTimeout = 120 * time.Second

// New makes the tools of a Toolset, in its order. What is wrong with it is a
// *InvalidError.
func New(ts task.Toolset, o Options) ([]tool.Tool, error) {
	plans, err := plansOf(ts)
	if err != nil {
		return nil, err
	}
	o.Now = clock.Or(o.Now)
	if o.Client == nil {
		o.Client = auth.NewClient()
	}
	home := make([]string, len(plans))
	for i, p := range plans {
		home[i] = p.tool.Name
	}
	tools, names := make([]tool.Tool, len(plans)), toolname.Of(ts.Name, home)
	for i, p := range plans {
		s := &sender{plan: p, runUID: o.RunUID, traceparent: o.Traceparent, client: auth.Client(o.Client, auth.Options{
			URL: p.base, Headers: ts.Requests.Headers, Auth: ts.Requests.Auth, Key: o.Key, Learn: o.Learn, Now: o.Now,
		}), auth: ts.Requests.Auth, authField: "spec.requests.auth of Toolset " + ts.Name}
		tools[i] = tool.Typed(tool.Spec{
			Name: names[i], Description: p.tool.Description, Input: p.input,
			Effect: p.effect(), Concurrency: tool.Parallel, Timeout: timeout(ts),
			Internal: facts.Facts{
				Origin:   facts.Origin{Toolset: ts.Name, Tool: p.tool.Name},
				Endpoint: facts.Endpoint{Name: "toolset " + ts.Name, Field: "spec.requests.baseURL of Toolset " + ts.Name},
			}.Internal(),
		}, s.call)
		tools[i].Canonicalize = s.canonical
	}
	return tools, nil
}

func timeout(ts task.Toolset) time.Duration {
	if ts.TimeoutSeconds > 0 {
		return time.Duration(ts.TimeoutSeconds) * time.Second
	}
	return defaultTimeout
}

// A sender sends one kind of request.
type sender struct {
	plan   *plan
	client *http.Client
	runUID string
	// traceparent makes the header of that name; nil: none is sent.
	traceparent func(callID string) string
	// auth are the credentials, which authField of the Toolset configures.
	auth      *task.Auth
	authField string
}

// canonical is the [tool.CanonicalFunc] of a request. A request follows from its arguments,
// and each value has one spelling in it, so arguments with their defaults are canonical. Those that no request can be made of are refused before anything
// judges them.
func (s *sender) canonical(ctx context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
	if _, err := s.plan.bind(ctx, args); err != nil {
		return nil, unbound(err).Error
	}
	return schema.Fill(s.plan.input, args), nil
}

func (s *sender) call(ctx context.Context, call tool.Call, args json.RawMessage) (tool.Result, error) {
	req, err := s.plan.bind(ctx, args)
	if err != nil {
		return unbound(err), nil
	}
	req.Header.Set("User-Agent", "Deckhand")
	// A connection that was used before may turn out to be dead, and then Go sends
	// a request again that has an Idempotency-Key, without knowing whether the
	// server heeds it.
	req.Close = true
	if key := s.runUID + "/" + call.ID; s.changes() && s.runUID != "" && call.ID != "" && httpguts.ValidHeaderFieldValue(key) {
		req.Header.Set("Idempotency-Key", key)
	}
	if s.traceparent != nil {
		req.Header.Set("Traceparent", s.traceparent(call.ID))
	}
	resp, err := s.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return tool.Result{}, context.Cause(ctx)
		}
		return s.unanswered(req, err), nil
	}
	defer resp.Body.Close()
	a := read(resp)
	if ctx.Err() != nil && a.broken != "" {
		return tool.Result{}, context.Cause(ctx)
	}
	return a.result(s.plan.effect(), auth.Remedy(a.code, s.authField, s.auth)), nil
}

// changes reports whether the request may change something.
func (s *sender) changes() bool { return s.plan.effect() != tool.ReadOnly }

// unbound says why there is no request.
func unbound(err error) tool.Result {
	if wrong, ok := errors.AsType[*expr.Error](err); ok && wrong.Expression == "" {
		return tool.Fail("The request was not sent: " + wrong.Message)
	}
	return tool.Fail(fmt.Sprintf("The request was not sent: %v", err))
}
