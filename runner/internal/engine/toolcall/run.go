package toolcall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// CancelTimeout is how long a cancelled call may take to return. After that a result is recorded without it.
const CancelTimeout = 2 * time.Second

var errTimeout = errors.New("the call took too long")

// An outcome is the result of calling a tool.
type outcome struct {
	result tool.Result
	err    error
}

// timeout returns how long the call may take; false: it is not bounded.
func (t *toolCall) timeout() (time.Duration, bool) {
	switch {
	case t.tool.Timeout == tool.Unbounded:
		return 0, false
	case t.tool.Timeout > 0:
		return t.tool.Timeout, true
	}
	return DefaultTimeout, true
}

// runTool calls the tool, after recording that the call begins.
func (t *toolCall) runTool(ctx context.Context, c *tool.Call) (tool.Result, error) {
	r := t.runner
	err := r.records.Record(journal.Record{Kind: journal.KindIntent, Intent: &journal.Intent{
		CallID: t.call.ID, Name: t.call.Name, Args: c.Args, Written: t.written, Effect: string(t.effect(c.Args)),
	}})
	if err != nil {
		return tool.Result{}, t.fail(fmt.Errorf("recording call %s: %w", t.call.ID, err))
	}
	t.begun, t.intent, t.made = false, nil, c.Args
	r.session.ShowStarted(t.call, c.Args)
	res, err := t.runBounded(ctx, c)
	if err != nil {
		return tool.Result{}, t.fail(err)
	}
	t.remote = t.reached(res)
	return res, nil
}

// reached returns the endpoint of the tool, with the error if the call could not reach it; nil: the tool has no endpoint.
func (t *toolCall) reached(res tool.Result) *journal.Remote {
	at := t.tool.Internal.Facts().Endpoint
	if at.Name == "" {
		return nil
	}
	remote := &journal.Remote{Name: at.Name, Field: at.Field}
	if res.Error != nil {
		remote.Unreachable = task.Cut(t.runner.config.Redact.String(t.report.Unreachable()), task.MaxSummary)
	}
	return remote
}

// runBounded calls the tool with its timeout. It does not wait for a tool that does not return.
func (t *toolCall) runBounded(ctx context.Context, c *tool.Call) (tool.Result, error) {
	if limit, bounded := t.timeout(); bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errTimeout)
		defer cancel()
	}
	session := &callSession{Session: c.Session}
	c.Session = session
	done := make(chan outcome, 1)
	go func() { done <- t.runRecovering(ctx, c) }()
	var a outcome
	select {
	case a = <-done:
	case <-ctx.Done():
		a = t.awaitCancelled(ctx, done)
	}
	failed := session.failed()
	if a.err != nil && failed != nil {
		a.err = failed
	}
	switch {
	case errors.Is(a.err, signals.ErrStopped):
		return tool.Fail(ResultStopped), nil
	case approval.Leaves(a.err) && ctx.Err() == nil:
		return tool.Result{}, a.err
	case ctx.Err() != nil && (a.err != nil || a.result.Error != nil):
		return t.resultOfCancelled(context.Cause(ctx))
	case a.err == nil:
		return a.result, nil
	}
	fatal := isFatal(a.err)
	if failed == nil {
		a.result = tool.Fail(cmp.Or(a.err.Error(), ResultNoMessage))
		if !fatal {
			return a.result, nil
		}
		t.fatal = &a.result
	}
	return tool.Result{}, fmt.Errorf("calling %s: %w", t.call.Name, a.err)
}

// isFatal reports whether an error of a tool ends the attempt.
func isFatal(err error) bool {
	_, is := errors.AsType[*tool.FatalError](err)
	return is
}

// A callSession is the session of one call. It keeps the first error of the session, for example that the disk of the
// journal is full. That error ends the Run, whatever the tool returns.
type callSession struct {
	tool.Session

	mu  sync.Mutex
	err error
}

// Delegate implements [tool.Session].
func (s *callSession) Delegate(ctx context.Context, d tool.Delegation) (tool.Result, error) {
	res, err := s.Session.Delegate(ctx, d)
	s.keepError(ctx, err)
	return res, err
}

// Ask implements [tool.Session].
func (s *callSession) Ask(ctx context.Context, q tool.Question) (tool.Answer, error) {
	a, err := s.Session.Ask(ctx, q)
	s.keepError(ctx, err)
	return a, err
}

// keepError keeps the first error, unless the context has ended: then the end of the context is the cause of the error.
func (s *callSession) keepError(ctx context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && ctx.Err() == nil {
		s.err = err
	}
}

func (s *callSession) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// awaitCancelled waits at most CancelTimeout for a cancelled call. A call that has opened another session is awaited
// without a bound: that session ends by itself, and still records.
func (t *toolCall) awaitCancelled(ctx context.Context, done <-chan outcome) outcome {
	select {
	case a := <-done:
		return a
	case <-time.After(CancelTimeout):
	}
	if !t.session.close() {
		return <-done
	}
	return outcome{err: context.Cause(ctx)}
}

// runRecovering calls the tool. A panic in the tool becomes a result.
func (t *toolCall) runRecovering(ctx context.Context, c *tool.Call) (a outcome) {
	defer func() {
		if p := recover(); p != nil {
			t.emitOutput(fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))
			a = outcome{result: tool.Fail(fmt.Sprintf("the tool crashed: %v", p))}
		}
	}()
	res, err := t.tool.Call(ctx, *c)
	if err != nil {
		_ = err.Error() // of a nil pointer it panics: here
	}
	return outcome{result: res, err: err}
}

// emitOutput emits the output of a running call.
func (t *toolCall) emitOutput(text string) {
	t.runner.records.Emit("", events.CallOutput{ID: t.call.ID, Text: text})
}

// resultOfCancelled returns the result of a call that was cancelled while it ran. If another attempt has taken over,
// the error is returned and there is no result. A call that can be resumed stays open for the next attempt.
func (t *toolCall) resultOfCancelled(cause error) (tool.Result, error) {
	if errors.Is(cause, errTimeout) {
		limit, _ := t.timeout()
		return tool.Fail(ResultTimeout(limit)), nil
	}
	end, ok := errors.AsType[*task.EndError](cause)
	switch {
	case !ok || endsRecording(end):
		return tool.Result{}, cause
	case end.Reason != task.ReasonInterrupted:
		return tool.Fail("Interrupted: " + end.Message), nil
	case t.effect(t.call.Args) == tool.Resumable:
		return tool.Result{}, signals.ErrInterrupted
	}
	return t.runner.interruptedResult(ResultShutdown, t.call.ID), nil
}

// endsRecording reports whether nothing may be recorded after an end.
func endsRecording(end *task.EndError) bool {
	return end.Reason != task.ReasonInterrupted && end.Reason != task.ReasonDurationLimit
}
