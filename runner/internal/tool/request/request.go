// Package request makes tools of the HTTP requests in a Toolset: a method, a path, parameters and a body, with ${{
// input.x }} for values of the arguments. A value is encoded for its place. In a path it is one segment or a part of
// one, in a query the value of one parameter, in a body a value of JSON. It can never become another segment, parameter
// or member, and expressions in it are not evaluated. Only the Toolset determines where a request is sent.
package request

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/internal/shared/expr"
	"github.com/deckhand-dev/deckhand/internal/shared/inputtext"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
	"github.com/deckhand-dev/deckhand/internal/shared/weburl"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/auth"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/facts"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/toolname"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// Options configure the tools of a Toolset.
type Options struct {
	// Client sends the requests. Nil: a client that connects to all addresses except this machine, link-local addresses
	// and metadata services.
	Client *http.Client
	// Key returns the current value of a key of a Secret.
	Key func(task.SecretKey) (string, error)
	// Learn is called with each secret that is sent, for the redactor. May be nil.
	Learn func(redact.Secret)
	// RunUID is the first half of the Idempotency-Key of requests with effects; empty: none is sent.
	RunUID string
	// Traceparent returns the header traceparent of a call; nil: none is sent.
	Traceparent func(callID string) string
	// Now is the current time; nil: the machine's.
	Now func() time.Time
}

// defaultTimeout bounds a call if the Toolset does not.
const defaultTimeout = 120 * time.Second

// New makes the tools of a Toolset, in its order. An error in the Toolset is a *InvalidError.
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

// A sender sends the requests of one tool.
type sender struct {
	plan   *plan
	client *http.Client
	runUID string
	// traceparent returns the header traceparent of a call; nil: none is sent.
	traceparent func(callID string) string
	// auth are the credentials, configured in the field authField of the Toolset.
	auth      *task.Auth
	authField string
}

// canonical implements [tool.CanonicalFunc] for a request. The request is a function of the arguments, and each value
// has one encoding, so the arguments with their defaults are canonical. Arguments from which no request can be made are
// refused before policies see them.
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
	// If a reused connection is broken, net/http repeats a request that has an Idempotency-Key, and the server may
	// ignore that key.
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

// changes reports whether the request may have an effect.
func (s *sender) changes() bool { return s.plan.effect() != tool.ReadOnly }

// unbound describes why no request could be made.
func unbound(err error) tool.Result {
	if wrong, ok := errors.AsType[*expr.Error](err); ok && wrong.Expression == "" {
		return tool.Fail("The request was not sent: " + wrong.Message)
	}
	return tool.Fail(fmt.Sprintf("The request was not sent: %v", err))
}

// A plan is a parsed request without values. It is never changed.
type plan struct {
	tool   task.RequestTool
	base   *url.URL
	input  json.RawMessage
	values *inputtext.Input
	media  string
	path   []inputtext.Text // one for each segment
	query  []parameter
	body   *node
	texts  []placed // all of them, in the order of the fields
}

type parameter struct {
	name  string
	value *inputtext.Text
}

// A placed text is a text with its place in the Toolset.
type placed struct {
	at      string
	absence inputtext.Absence
	text    *inputtext.Text
}

// effect returns the effect class of the request, as HTTP defines its method.
func (p *plan) effect() tool.Effect {
	switch p.tool.Method {
	case http.MethodGet, http.MethodHead:
		return tool.ReadOnly
	case http.MethodPut, http.MethodDelete:
		return tool.Idempotent
	}
	return tool.Once
}

// bind makes the request with the arguments of a call.
func (p *plan) bind(ctx context.Context, args json.RawMessage) (*http.Request, error) {
	in, err := inputtext.NewValues(schema.Fill(p.input, args))
	if err != nil {
		return nil, err
	}
	path, err := p.bindPath(in)
	if err != nil {
		return nil, err
	}
	query, err := p.bindQuery(in)
	if err != nil {
		return nil, err
	}
	body, err := p.bindBody(in)
	if err != nil {
		return nil, err
	}
	to := *p.base
	whole := strings.TrimSuffix(p.base.EscapedPath(), "/") + path
	if to.Path, err = url.PathUnescape(whole); err != nil {
		return nil, fmt.Errorf("reading the path: %w", err)
	}
	to.RawPath, to.RawQuery = whole, query
	if to.EscapedPath() != whole { // it would be sent as something else
		return nil, &valueError{fmt.Sprintf("the path %q cannot be sent", whole)}
	}
	req, err := http.NewRequestWithContext(ctx, p.tool.Method, to.String(), body)
	if err != nil {
		return nil, &valueError{err.Error()}
	}
	if req.URL.Scheme != p.base.Scheme || req.URL.Host != p.base.Host || req.URL.EscapedPath() != whole {
		return nil, errors.New("the arguments changed where the request goes")
	}
	if body != nil {
		req.Header.Set("Content-Type", p.media)
	}
	return req, nil
}

// bindQuery returns the query with its values. A parameter that consists of one expression is left out if the
// expression has no value, and repeated if its value is an array.
func (p *plan) bindQuery(in *inputtext.Values) (string, error) {
	values := url.Values{}
	for _, q := range p.query {
		alone := q.value.Alone()
		if alone == nil {
			text, err := q.value.Bind(in, plainText)
			if err != nil {
				return "", err
			}
			values.Add(q.name, text)
			continue
		}
		all, err := listOf(in, alone)
		if err != nil {
			return "", err
		}
		for _, one := range all {
			values.Add(q.name, one)
		}
	}
	return values.Encode(), nil
}

// listOf returns the values of one parameter.
func listOf(in *inputtext.Values, e *inputtext.Expression) ([]string, error) {
	value, ok, err := e.Find(in)
	value = bytes.TrimSpace(value)
	if err != nil || !ok || string(value) == "null" {
		return nil, err
	}
	items := []json.RawMessage{value}
	if value[0] == '[' {
		items = nil
		if err := json.Unmarshal(value, &items); err != nil {
			return nil, err
		}
	}
	all := make([]string, len(items))
	for i, item := range items {
		all[i] = template.Text(item)
	}
	return all, nil
}

// readPath splits the path at its slashes. A value stays within its segment.
func (p *plan) readPath(at string) error {
	if !strings.HasPrefix(p.tool.Path, "/") {
		return errorf(at, "must begin with /")
	}
	whole, err := p.text(at, p.tool.Path, inputtext.MustHave)
	if err != nil {
		return err
	}
	for _, s := range segmentsOf(whole)[1:] { // before the first slash is nothing
		var words strings.Builder
		for _, part := range s.Parts {
			words.WriteString(part.Words)
			if part.Value != nil {
				words.WriteString("x")
			}
		}
		if err := segment(words.String()); err != nil {
			return errorf(at, "%v", err)
		}
		p.path = append(p.path, s)
	}
	return nil
}

// segmentsOf splits a path at the slashes of its literal text.
func segmentsOf(path *inputtext.Text) []inputtext.Text {
	all := []inputtext.Text{{}}
	for _, part := range path.Parts {
		pieces := strings.Split(part.Words, "/")
		for i, words := range pieces {
			if i > 0 {
				all = append(all, inputtext.Text{})
			}
			piece := inputtext.Part{Words: words}
			if i == len(pieces)-1 {
				piece.Value = part.Value
			}
			last := &all[len(all)-1]
			last.Parts = append(last.Parts, piece)
		}
	}
	return all
}

// segment checks the literal text between two slashes.
func segment(s string) error {
	u, err := url.Parse("http://host/" + s)
	switch {
	case strings.ContainsAny(s, "?#"):
		return errors.New("has ? or #; write parameters in query")
	case err != nil || u.EscapedPath() != "/"+s:
		if found := template.FindForeign(s); len(found) > 0 {
			return fmt.Errorf("%s is no reference to the input; write ${{ input.%s }}", found[0].Text, found[0].Name())
		}
		return fmt.Errorf("%q cannot stand in a path as it is; write it percent-encoded", s)
	case dots(u.Path[1:]):
		return fmt.Errorf("%q leads elsewhere; write the path that is meant", s)
	}
	return nil
}

// dots reports whether a literal segment is . or .., which would lead to another path.
func dots(decoded string) bool { return decoded == "." || decoded == ".." }

// A valueError means that a value cannot be used at its place.
type valueError struct{ problem string }

func (e *valueError) Error() string { return e.problem }

// bindPath returns the path with its values, escaped. A value that contains a segment "..", encoded or not, between
// slashes or backslashes, is refused: a server that decodes too often would follow it.
func (p *plan) bindPath(in *inputtext.Values) (string, error) {
	var path strings.Builder
	for i := range p.path {
		t := &p.path[i]
		escaped, err := t.Bind(in, func(v json.RawMessage) (string, error) {
			s, err := scalar(v)
			return url.PathEscape(s), err
		})
		if err != nil {
			return "", err
		}
		decoded, err := url.PathUnescape(escaped)
		if given := firstValue(t); given != nil && (err != nil || decoded == "" || dots(decoded) || weburl.LeadsUp(decoded)) {
			return "", &valueError{fmt.Sprintf("the path would have %q in it, which leads elsewhere than meant; give another %s", decoded, given)}
		}
		path.WriteString("/" + escaped)
	}
	return path.String(), nil
}

// firstValue returns the first expression of a segment, or nil.
func firstValue(t *inputtext.Text) *inputtext.Expression {
	for _, part := range t.Parts {
		if part.Value != nil {
			return part.Value
		}
	}
	return nil
}

// scalar returns a string, a number or a boolean as text.
func scalar(v json.RawMessage) (string, error) {
	v = bytes.TrimSpace(v)
	switch v[0] {
	case '{', '[', 'n':
		return "", errors.New("must be a string, a number or a boolean here")
	case '"':
		var s string
		err := json.Unmarshal(v, &s)
		return s, err
	}
	return string(v), nil
}
