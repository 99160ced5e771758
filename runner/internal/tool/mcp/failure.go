package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/deckhand-dev/deckhand/runner/internal/callreport"
	"github.com/deckhand-dev/deckhand/runner/internal/dialerror"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/auth"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

const (
	partly = "What it was to change may have changed nevertheless: look before you repeat it."
	once   = "Try it once more later, or do without it."
)

// failed returns what the model reads of a call that failed. It is the only place where
// errors of a server become text for the model.
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
		return tool.Fail(fmt.Sprintf("%s was not asked: %s", name, line(cred.Error(), maxErrorText)), "Nothing was done.", "That is for the owner of this agent to change.")
	case errors.As(err, &reach):
		callreport.SetUnreachable(ctx, line(cmp.Or(dialerror.Cause(err), reach.Error()), maxQuote))
		return tool.Fail(fmt.Sprintf("%s cannot be reached: %s", name, line(reach.Error(), maxErrorText)), "Nothing was done.", once)
	case errors.As(err, &status) && status.isRefusal():
		return tool.Fail(fmt.Sprintf("%s refused the request: %s", name, line(status.Error(), maxQuote)), "Nothing was done.", s.afterRefusal(status.code))
	case serverError(err) != nil:
		return tool.Fail(fmt.Sprintf("%s answered with an error: %s", name, clip(serverError(err).Message, maxErrorText)))
	}
	return lostAnswer(effect, name, err)
}

// afterRefusal says what to do after the server refused a request.
func (s *Server) afterRefusal(status int) string {
	if remedy := s.remedy(status, authField+" of Toolset "+s.Toolset.Name); remedy != "" {
		return "Only the owner of the agent can correct this: " + remedy + "."
	}
	return once
}

// lostAnswer returns what the model reads of an answer that did not arrive.
func lostAnswer(effect tool.Effect, name string, err error) tool.Result {
	if errors.Is(err, errPanic) {
		return doubtful(effect, name+" gave an answer that makes no sense")
	}
	if repeatable(effect) {
		return doubtful(effect, fmt.Sprintf("%s gave no usable answer, and was asked again: %s", name, line(err.Error(), maxErrorText)))
	}
	return doubtful(effect, fmt.Sprintf("the connection to %s was lost during the call; it may have partly happened: %s",
		name, line(err.Error(), maxErrorText)))
}

// doubtful returns a failure after which it is not known what has been done.
func doubtful(effect tool.Effect, message string) tool.Result {
	if effect == tool.ReadOnly {
		return tool.Fail(message, once)
	}
	return tool.Fail(message, partly)
}
