package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/deckhand-dev/deckhand/runner/internal/address"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/auth"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// An operation sends a request to a server within a session. The token is for progress.
type operation func(ctx context.Context, cs *session, token string) (tool.Result, error)

// callTool makes a call of a tool. What goes wrong with the server is for the
// model to read; an error is the end of the call's own context.
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

// try asks once, and once more where that does no harm.
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

// settle draws the consequences of a try for the session.
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

// repeatable reports whether a call does no harm when it is made twice.
func repeatable(e tool.Effect) bool { return e == tool.ReadOnly || e == tool.Idempotent }

// An outcome is what became of a try.
type outcome int

const (
	fine      outcome = iota // it was answered
	refused                  // it was answered with an error
	unsent                   // it did not get there
	lost                     // it is not known; the session is over
	unclear                  // it is not known; the session goes on
	abandoned                // the caller waits no longer
)

// classify says what became of a try.
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

// serverError returns what a server answered in place of a result; nil: it did not. The
// library says in the same form that it could not send a message.
func serverError(err error) *jsonrpc.Error {
	var answer *jsonrpc.Error
	if !errors.As(err, &answer) || answer.Code == rejected.Code && answer.Message == rejected.Message {
		return nil
	}
	return answer
}

// rejected is the library's own error.
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

// checkAlive ends the session if a server that did not answer a call does not answer
// a ping either.
func (s *Server) checkAlive(cs *session) {
	ctx, cancel := context.WithTimeout(s.connector.life, pingTimeout)
	defer cancel()
	err := safely(func() error { return cs.client.Ping(ctx, nil) })
	if err != nil && serverError(err) == nil && s.connector.life.Err() == nil {
		s.drop(cs)
	}
}

// A reachError means that there is no session.
type reachError struct{ err error }

func (e *reachError) Error() string { return e.err.Error() }

// Unwrap is why.
func (e *reachError) Unwrap() error { return e.err }
