package toolcall

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// Delegate implements [tool.Session].
func (s *toolSession) Delegate(ctx context.Context, d tool.Delegation) (tool.Result, error) {
	if err := s.enter(ctx); err != nil {
		return tool.Result{}, err
	}
	defer s.leave()
	d.Call = s.call.ID
	if d.Run {
		return s.runChild(ctx, d)
	}
	if !s.only() {
		return tool.Fail(ResultTwice), nil
	}
	// What works now is the other session, not the call that waits for it.
	s.runner.config.Activity.Leave()
	defer s.runner.config.Activity.Enter()
	ctx, cancel := within(ctx)
	defer cancel()
	return s.runner.session.Delegate(ctx, d)
}

// within is ctx for a session below it. The timeout of the call is to that
// session what a used-up duration is: its own calls get their results.
func within(ctx context.Context) (context.Context, context.CancelFunc) {
	child, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	off := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if errors.Is(cause, errTimeout) {
			cause = task.End(task.ReasonDurationLimit, "The call that opened this session took too long")
		}
		cancel(cause)
	})
	return child, func() { off(); cancel(nil) }
}

// An AgentEnd is how an agent ended.
type AgentEnd struct {
	Reason task.Reason
	// Message says what happened, Text is the last that its model said, and Output
	// what it committed.
	Message, Text string
	Output        json.RawMessage
}

// ResultOf is how an agent ended, as the call reads it that handed it work.
func ResultOf(agent string, out AgentEnd) tool.Result {
	switch {
	case out.Reason == task.ReasonFinished && out.Output != nil:
		return tool.Result{Text: string(out.Output)}
	case out.Reason == task.ReasonFinished:
		return tool.Result{Text: out.Text}
	case out.Reason == task.ReasonRejected:
		return tool.Fail(fmt.Sprintf(ResultRejected, agent, cmp.Or(out.Text, out.Message)))
	}
	message := fmt.Sprintf(ResultChild, agent, out.Reason, out.Message)
	if out.Text == "" {
		return tool.Fail(message)
	}
	return tool.Fail(message, fmt.Sprintf(ResultPartial, out.Text))
}
