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
func (t *toolCall) Delegate(ctx context.Context, d tool.Delegation) (tool.Result, error) {
	if err := t.enter(ctx); err != nil {
		return tool.Result{}, err
	}
	defer t.leave()
	r := t.runner
	d.Call = t.call.ID
	if d.Run {
		return t.runChild(ctx, d)
	}
	if !t.only() {
		return tool.Fail(ResultTwice), nil
	}
	// What works now is the other session, not the call that waits for it.
	r.config.Activity.Leave()
	defer r.config.Activity.Enter()
	ctx, cancel := within(ctx)
	defer cancel()
	return r.session.Delegate(ctx, d)
}

// only says whether the call is in no other session already.
func (t *toolCall) only() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inside == 1
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
