package mcp

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
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/deckhand-dev/deckhand/runner/internal/address"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/auth"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/facts"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/toolname"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A remote is a tool that a server executes.
type remote struct {
	tool.Tool
	home string // what it is called at home
}

// Tools returns the tools of the server, sorted by name: only those of allow, if it is set, and none of deny. Both use
// the server's names. Allowed tools that do not exist are a *NotOfferedError.
func (s *Server) Tools(allow, deny []string) ([]tool.Tool, error) {
	if s.Note() != "" {
		return nil, nil
	}
	all := s.all()
	if missing := without(allow, all); len(missing) > 0 {
		offered := make([]string, len(all))
		for i, t := range all {
			offered[i] = t.home
		}
		return nil, &NotOfferedError{
			Toolset: s.Toolset.Name, Missing: missing, Offered: offered,
			TaskOnly: slices.DeleteFunc(slices.Clone(missing), func(n string) bool { return !slices.Contains(s.offered.taskOnly, n) }),
		}
	}
	var tools []tool.Tool
	for _, t := range all {
		if len(allow) > 0 && !slices.Contains(allow, t.home) || slices.Contains(deny, t.home) {
			continue
		}
		if len(tools) == maxTools {
			s.Log(fmt.Sprintf("it offers more than %d tools; the rest is left out; list the tools that you need in allow", maxTools))
			break
		}
		tools = append(tools, t.Tool)
	}
	return tools, nil
}

// without returns the names that no tool has.
func without(names []string, all []*remote) []string {
	var missing []string
	for _, n := range names {
		if !slices.ContainsFunc(all, func(t *remote) bool { return t.home == n }) {
			missing = append(missing, n)
		}
	}
	return missing
}

// all returns all tools. The runner's own tools override tools of the server with the same name.
func (s *Server) all() []*remote {
	own := s.resourceAndPromptTools()
	home := make([]string, 0, len(own)+len(s.offered.tools))
	for _, t := range own {
		home = append(home, t.home)
	}
	tools := own
	for _, o := range s.offered.tools {
		if slices.ContainsFunc(own, func(t *remote) bool { return t.home == o.name }) {
			s.Log(fmt.Sprintf("the tool %q is left out: it has the name of a tool that reads resources or prompts", o.name))
			continue
		}
		home = append(home, o.name)
		tools = append(tools, s.offer(o))
	}
	names, seen := toolname.Of(s.Toolset.Name, home), map[string]bool{}
	tools = slices.DeleteFunc(tools, func(t *remote) bool {
		t.Name = names[slices.Index(home, t.home)]
		known := t.Internal.Facts()
		known.Origin = facts.Origin{Toolset: s.Toolset.Name, Tool: t.home}
		t.Internal = known.Internal()
		taken := seen[t.Name] // made so on purpose
		seen[t.Name] = true
		return taken
	})
	slices.SortFunc(tools, func(a, b *remote) int { return cmp.Compare(a.Name, b.Name) })
	return tools
}

// offer makes a tool from an offer.
func (s *Server) offer(o offer) *remote {
	effect := s.effectOf(o)
	return &remote{home: o.name, Tool: tool.Tool{
		Spec: s.spec(tool.Spec{Description: o.description, Input: o.input, Effect: effect}),
		Call: func(ctx context.Context, call tool.Call) (tool.Result, error) {
			return s.callTool(ctx, call, effect, func(ctx context.Context, cs *session, token string) (tool.Result, error) {
				params := &mcp.CallToolParams{Name: o.name, Arguments: call.Args}
				params.SetProgressToken(token)
				addTrace(ctx, params)
				answer, err := cs.client.CallTool(ctx, params)
				if err != nil {
					return tool.Result{}, err
				}
				return resultOf(answer), nil
			})
		},
	}}
}

// spec completes the Spec of a tool of the server. This package bounds the time of a call, because it knows its
// progress; Timeout applies if that fails.
func (s *Server) spec(spec tool.Spec) tool.Spec {
	known := facts.Facts{Foreign: true}
	if s.Toolset.HTTP != nil {
		known.Endpoint = facts.Endpoint{Name: "toolset " + s.Toolset.Name, Field: s.field() + " of Toolset " + s.Toolset.Name}
	}
	spec.Concurrency, spec.Timeout, spec.Internal = tool.Parallel, maxCall+s.ConnectTimeout, known.Internal()
	return spec
}

// effectOf returns the effect of a tool: Once, unless the Toolset, or a hint of a server whose hints are trusted, sets
// another.
func (s *Server) effectOf(o offer) tool.Effect {
	switch {
	case slices.Contains(s.Toolset.ReadOnly, o.name), s.Toolset.TrustHints && o.readOnly:
		return tool.ReadOnly
	case slices.Contains(s.Toolset.Idempotent, o.name), s.Toolset.TrustHints && o.idempotent:
		return tool.Idempotent
	}
	return tool.Once
}

// An operation sends a request to a server within a session. The token is for progress.
type operation func(ctx context.Context, cs *session, token string) (tool.Result, error)

// callTool calls a tool. Errors of the server become results for the model; an error means that the context of the call
// ended.
func (s *Server) callTool(ctx context.Context, call tool.Call, effect tool.Effect, do operation) (tool.Result, error) {
	limited, cancel := context.WithCancelCause(s.withTrace(ctx, call.ID))
	defer cancel(nil)
	long := time.AfterFunc(maxCall, func() { cancel(errLong) })
	defer long.Stop()
	idle := time.AfterFunc(s.timeout(), func() { cancel(errIdle) })
	defer idle.Stop()
	shown := ticker{emit: call.Emit, now: s.Now}
	token, end := s.calls.begin(func(text string) {
		if idle.Stop() { // a call that was given up does not come back
			idle.Reset(s.timeout())
		}
		shown.show(text)
	})
	defer end()
	result, err := s.try(limited, effect, func(ctx context.Context, cs *session) (tool.Result, error) { return do(ctx, cs, token) })
	if err == nil {
		return result, nil
	}
	if ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	return s.failed(limited, effect, err), nil
}

// try makes a request, and repeats it once if that is harmless.
func (s *Server) try(ctx context.Context, effect tool.Effect, do func(context.Context, *session) (tool.Result, error)) (tool.Result, error) {
	var doubt error // of the first time
	for again := true; ; again = false {
		cs, err := s.get(ctx)
		switch {
		case err != nil && doubt != nil:
			return tool.Result{}, doubt
		case err != nil:
			return tool.Result{}, &reachError{err}
		}
		var result tool.Result
		err = safely(func() error {
			var err error
			result, err = do(ctx, cs)
			return err
		})
		what := classify(ctx, cs, err)
		err = s.settle(cs, what, err)
		if what < unsent || what == abandoned || !again || what != unsent && !repeatable(effect) {
			return result, err
		}
		if what != unsent {
			doubt = err
		}
	}
}

// settle keeps, drops or replaces the session after a try.
func (s *Server) settle(cs *session, what outcome, err error) error {
	switch what {
	case fine, refused:
		s.answered(cs)
	case abandoned:
		go s.checkAlive(cs)
	case unsent, lost:
		err = withEndReason(cs, err)
		s.drop(cs)
	case unclear:
	}
	return err
}

// repeatable reports whether a call may be made twice.
func repeatable(e tool.Effect) bool { return e == tool.ReadOnly || e == tool.Idempotent }

// An outcome is the outcome of a try.
type outcome int

const (
	fine      outcome = iota // it was answered
	refused                  // it was answered with an error
	unsent                   // it did not get there
	lost                     // it is not known; the session is over
	unclear                  // it is not known; the session goes on
	abandoned                // the caller waits no longer
)

// classify classifies the outcome of a try.
func classify(ctx context.Context, cs *session, err error) outcome {
	var (
		status *statusError
		dial   *net.OpError
		cred   *auth.CredentialError
		addr   *address.RefusedError
	)
	switch {
	case err == nil:
		return fine
	case ctx.Err() != nil:
		return abandoned
	case errors.As(err, &status):
		switch {
		case status.code == 404:
			return unsent
		case status.isRefusal():
			return refused
		}
		return unclear
	case errors.As(err, &cred), errors.As(err, &addr):
		return refused
	case errors.As(err, &dial) && dial.Op == "dial":
		return unsent
	case serverError(err) != nil:
		return refused
	case cs.guard.over(), errors.Is(err, mcp.ErrConnectionClosed), isEOF(err):
		return lost
	}
	return unclear
}

// serverError returns the error that a server sent instead of a result, or nil. The library uses the same form if it
// could not send a message.
func serverError(err error) *jsonrpc.Error {
	var answer *jsonrpc.Error
	if !errors.As(err, &answer) || answer.Code == rejected.Code && answer.Message == rejected.Message {
		return nil
	}
	return answer
}

// rejected is the library's own error of this form.
var rejected = jsonrpc.Error{Code: -32005, Message: "rejected by transport"}

// isEOF reports whether a stream ended.
func isEOF(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe)
}

// withEndReason adds why the session ended, if that is known.
func withEndReason(cs *session, err error) error {
	if last := cs.endReason(); last != nil {
		return fmt.Errorf("%w (%w)", errLost, last)
	}
	return err
}

var errLost = errors.New("the connection was lost")

// checkAlive ends the session of a call without an answer if the server does not answer a ping either.
func (s *Server) checkAlive(cs *session) {
	ctx, cancel := context.WithTimeout(s.connector.life, pingTimeout)
	defer cancel()
	err := safely(func() error { return cs.client.Ping(ctx, nil) })
	if err != nil && serverError(err) == nil && s.connector.life.Err() == nil {
		s.drop(cs)
	}
}

// A reachError means that no session could be opened.
type reachError struct{ err error }

func (e *reachError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *reachError) Unwrap() error { return e.err }

// A question is a request of the protocol in the body of an HTTP request.
type question struct {
	id     json.RawMessage // nil: there is none, or it expects no answer
	method string
}

// askedBy decodes the body of a request.
func askedBy(req *http.Request) question {
	if req.GetBody == nil {
		return question{}
	}
	body, err := req.GetBody()
	if err != nil {
		return question{}
	}
	defer body.Close()
	text, _ := io.ReadAll(body)
	message := readObject(text)
	return question{id: message["id"], method: message.string("method")}
}

// isCall reports whether a request is made within an open session. Older servers refuse the requests that open one,
// which the library handles.
func (q question) isCall() bool {
	return len(q.id) > 0 && q.method != "" && q.method != "initialize" && q.method != "server/discover"
}

// errorIn returns the error in the body of a response, or nil. The ID may be written as a string.
func (q question) errorIn(body []byte) *jsonrpc.Error {
	message := readObject(body)
	failure := readObject(message["error"])
	id := strings.Trim(string(message["id"]), `"`)
	if failure == nil || len(q.id) == 0 || q.method == "server/discover" || id != strings.Trim(string(q.id), `"`) {
		return nil
	}
	answer := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: failure.string("message"), Data: failure["data"]}
	var code int64
	if json.Unmarshal(failure["code"], &code) == nil && code != 0 {
		answer.Code = code
	}
	return answer
}

// answeredBy returns a response with an error, in the form of the protocol.
func (q question) answeredBy(resp *http.Response, failure *jsonrpc.Error) *http.Response {
	body := marshal(map[string]any{"jsonrpc": "2.0", "id": q.id, "error": failure})
	answer := *resp
	answer.StatusCode, answer.Status = http.StatusOK, http.StatusText(http.StatusOK)
	answer.Header = resp.Header.Clone()
	answer.Header.Set("Content-Type", "application/json")
	answer.Header.Del("Content-Length")
	answer.ContentLength = int64(len(body))
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return &answer
}

// size returns a number of bytes for users.
func size(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
