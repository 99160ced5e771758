package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/quote"
	"github.com/deckhand-dev/deckhand/runner/internal/callreport"
	"github.com/deckhand-dev/deckhand/runner/internal/dialerror"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/auth"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// An UnavailableError means that a server could not be reached, or did not speak the protocol.
type UnavailableError struct {
	Toolset string
	// Field is the field of the Toolset to check.
	Field string
	// Remedy describes what to do, if the server refused the credentials.
	Remedy string
	Err    error
}

func (e *UnavailableError) Error() string {
	if e.Remedy != "" {
		return fmt.Sprintf("the MCP server refused access: %s. %s", strings.TrimSuffix(e.Reason(), "."), e.Remedy)
	}
	return fmt.Sprintf("the MCP server (%s) is not available: %s", e.Field, e.Reason())
}

// Reason returns the cause, without the steps of the protocol.
func (e *UnavailableError) Reason() string {
	if status, is := errors.AsType[*statusError](e.Err); is {
		return status.Error()
	}
	return cmp.Or(dialerror.Cause(e.Err), e.Err.Error())
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// A NotOfferedError means that an Agent allows tools that a server does not
// offer.
type NotOfferedError struct {
	Toolset string
	// Missing are the allowed tools that are missing, Offered the tools of the server.
	Missing, Offered []string
	// TaskOnly are the tools of Missing that the server offers only as tasks.
	TaskOnly []string
}

func (e *NotOfferedError) Error() string {
	offered := "nothing"
	if len(e.Offered) > 0 {
		offered = list(e.Offered)
	}
	why := ""
	if len(e.TaskOnly) > 0 {
		why = fmt.Sprintf("; %s must be called as a task, which is not supported", list(e.TaskOnly))
	}
	return fmt.Sprintf("the Toolset %s does not offer %s%s; it offers %s; correct allow", e.Toolset, list(e.Missing), why, offered)
}

// list returns a few names in one line.
func list(names []string) string {
	const most = 100
	more := ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d more", len(names)-most)
	}
	told := make([]string, len(names))
	for i, n := range names {
		told[i] = quote.Line(n, 128)
	}
	return strings.Join(told, ", ") + more
}

// A statusError is an HTTP response that does not belong to the protocol.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("it answered %d %s", e.code, e.text))
}

// isRefusal reports whether the status means that the request had no effect.
func (e *statusError) isRefusal() bool {
	return e.code < 500 && e.code != http.StatusRequestTimeout || e.code == http.StatusServiceUnavailable
}

var (
	// errIdle ends a call without progress.
	errIdle = errors.New("nothing happened in time")
	// errLong ends a call that exceeded its time.
	errLong = errors.New("the call took too long")
	// errLarge ends a session with a message that is too large.
	errLarge = fmt.Errorf("it sent a message of more than %d MiB", maxMessage>>20)
	// errOver ends calls when a Server is closed.
	errOver = errors.New("the session was closed")
	// errGone means that a program is not started again.
	errGone = fmt.Errorf("it ended %d times in a row and is not started again", maxFailures)
	// errOldTransport means that a server speaks a transport that was replaced.
	errOldTransport = errors.New("it speaks the HTTP+SSE transport of 2024-11-05, which is not supported. " +
		"Use the URL of its Streamable HTTP endpoint (often /mcp in place of /sse), or a newer version of the server")
	// errPanic means that the library panicked on a message of a server.
	errPanic = errors.New("what it sent makes no sense")
)

const (
	partly = "What it was to change may have changed nevertheless: look before you repeat it."
	once   = "Try it once more later, or do without it."
)

// failed returns the text for the model about a failed call. It is the only place where errors of a server become text
// for the model.
func (s *Server) failed(ctx context.Context, effect tool.Effect, err error) tool.Result {
	name := "the MCP server of " + s.Toolset.Name
	var (
		status *statusError
		reach  *reachError
		cred   *auth.CredentialError
	)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errIdle):
		return doubtful(effect, fmt.Sprintf("%s did not answer within %v, and told of no progress", name, s.timeout()))
	case errors.Is(cause, errLong):
		return doubtful(effect, fmt.Sprintf("%s did not answer within %v", name, maxCall))
	case errors.As(err, &reach) && errors.Is(err, errOver):
		return tool.Fail(name + " was not asked: the session is being closed")
	case errors.Is(err, errGone):
		return tool.Fail(name+" has ended: "+errGone.Error(), "Its tools do not come back in this attempt; do without them.")
	case errors.As(err, &cred):
		return tool.Fail(fmt.Sprintf("%s was not asked: %s", name, quote.Line(cred.Error(), maxErrorText)), "Nothing was done.", "That is for the owner of this agent to change.")
	case errors.As(err, &reach):
		callreport.SetUnreachable(ctx, quote.Line(cmp.Or(dialerror.Cause(err), reach.Error()), maxQuote))
		return tool.Fail(fmt.Sprintf("%s cannot be reached: %s", name, quote.Line(reach.Error(), maxErrorText)), "Nothing was done.", once)
	case errors.As(err, &status) && status.isRefusal():
		return tool.Fail(fmt.Sprintf("%s refused the request: %s", name, quote.Line(status.Error(), maxQuote)), "Nothing was done.", s.afterRefusal(status.code))
	case serverError(err) != nil:
		return tool.Fail(fmt.Sprintf("%s answered with an error: %s", name, quote.Clip(serverError(err).Message, maxErrorText)))
	}
	return lostAnswer(effect, name, err)
}

// afterRefusal returns what to do after the server refused a request.
func (s *Server) afterRefusal(status int) string {
	if remedy := s.remedy(status, authField+" of Toolset "+s.Toolset.Name); remedy != "" {
		return "Only the owner of the agent can correct this: " + remedy + "."
	}
	return once
}

// lostAnswer returns the text for the model about a response that did not arrive.
func lostAnswer(effect tool.Effect, name string, err error) tool.Result {
	if errors.Is(err, errPanic) {
		return doubtful(effect, name+" gave an answer that makes no sense")
	}
	if repeatable(effect) {
		return doubtful(effect, fmt.Sprintf("%s gave no usable answer, and was asked again: %s", name, quote.Line(err.Error(), maxErrorText)))
	}
	return doubtful(effect, fmt.Sprintf("the connection to %s was lost during the call; it may have partly happened: %s",
		name, quote.Line(err.Error(), maxErrorText)))
}

// doubtful returns a failure after which the effect of the call is not known.
func doubtful(effect tool.Effect, message string) tool.Result {
	if effect == tool.ReadOnly {
		return tool.Fail(message, once)
	}
	return tool.Fail(message, partly)
}
