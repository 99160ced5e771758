package toolcall

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// StopTimeout is how long a cancelled call waits for its child Run to be stopped.
const StopTimeout = time.Minute

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
	if !s.isOnlyActive() {
		return tool.Fail(ResultTwice), nil
	}
	// What works now is the other session, not the call that waits for it.
	s.runner.config.Activity.Leave()
	defer s.runner.config.Activity.Enter()
	ctx, cancel := childContext(ctx)
	defer cancel()
	return s.runner.session.Delegate(ctx, d)
}

// childContext returns the context of a session below this one. In that session the timeout of the call acts like the
// end of limits.duration: its own calls still get results.
func childContext(ctx context.Context) (context.Context, context.CancelFunc) {
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
	// Message describes what happened, Text is the last text of its model, and Output what it committed.
	Message, Text string
	Output        json.RawMessage
}

// ResultOf returns how an agent ended, as the result of the call that delegated to it.
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

// runChild has a child Run do the work and waits for its result. A call requests only one child Run: after a resume it
// waits for the same one.
func (s *toolSession) runChild(ctx context.Context, d tool.Delegation) (tool.Result, error) {
	switch {
	case !s.runner.config.CanStartRuns:
		return tool.Result{Error: &tool.Error{Message: fmt.Sprintf(ResultNoOperator, d.Agent), Recommendations: []string{AdviceAlone}}}, nil
	case !s.isOnlyActive():
		return tool.Fail(ResultTwice), nil
	}
	asked, wrong, err := s.recordDelegation(d)
	if wrong != nil || err != nil {
		return tool.Result{Error: wrong}, err
	}
	if _, over := s.childResult(asked.ID); !over {
		err = s.awaitChild(ctx, asked)
	}
	if errors.Is(err, signals.ErrStopped) {
		return tool.Fail(fmt.Sprintf(ResultAbandoned, asked.Delegation.Agent)), nil
	}
	if err != nil {
		return tool.Result{}, err
	}
	c, _ := s.childResult(asked.ID)
	return resultOfChild(asked.Delegation.Agent, c), nil
}

// awaitChild waits until a child Run has ended. If the call is cancelled and the Run is not, the operator is asked to
// stop the child Run, and its usage is still recorded.
func (s *toolSession) awaitChild(ctx context.Context, asked state.Asked) error {
	requests, q := s.runner.config.Requests, s.requestOfChild(asked)
	_, _, err := requests.Await(ctx, &q)
	end, ok := errors.AsType[*task.EndError](err)
	if !ok || end.Reason != task.ReasonDurationLimit || requests.LimitReached() {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), StopTimeout, end)
	defer cancel()
	q = s.requestOfChild(asked)
	q.Cancelled = true
	_, _, err = requests.Await(ctx, &q)
	return err
}

// recordDelegation records the request for a child Run, before the operator sees it. It refuses arguments that a child
// Run cannot have.
func (s *toolSession) recordDelegation(d tool.Delegation) (state.Asked, *tool.Error, error) {
	if asked, known := s.requestedChildRun(d.Call); known {
		return asked, nil, nil
	}
	args, err := digest.Canonical(d.Input)
	switch {
	case err != nil:
		return state.Asked{}, &tool.Error{Message: fmt.Sprintf(ResultAmbiguous, err)}, nil
	case len(args) > task.MaxDelegated:
		return state.Asked{}, &tool.Error{
			Message: fmt.Sprintf(ResultInputLarge, len(args), d.Agent, task.MaxDelegated), Recommendations: []string{AdviceShorter},
		}, nil
	}
	if err := s.runner.records.Record(journal.Record{Kind: journal.KindAsk, Request: &journal.Request{
		ID: s.freeID(d.Call), CallID: d.Call, Digest: digest.Call(d.Agent, args),
		Delegation: &journal.Delegation{Agent: d.Agent, Args: string(args)},
	}}); err != nil {
		return state.Asked{}, nil, fmt.Errorf("recording a request: %w", err)
	}
	asked, _ := s.requestedChildRun(d.Call)
	return asked, nil, nil
}

// requestedChildRun returns the request for a child Run that a call has already made.
func (s *toolSession) requestedChildRun(call string) (asked state.Asked, known bool) {
	s.runner.config.State.ViewSession(s.runner.options.Name, func(now *state.Session) { asked, known = now.Delegated(call) })
	return asked, known
}

// freeID returns an id that no other request about the call has.
func (s *toolSession) freeID(call string) (id string) {
	s.runner.config.State.ViewSession(s.runner.options.Name, func(now *state.Session) { id = approval.FreeID(call, "", now.Requests[call], nil) })
	return id
}

// childResult returns the result of the child Run of a request; false: it has not ended.
func (s *toolSession) childResult(request string) (c journal.Child, over bool) {
	s.runner.config.State.ViewSession(s.runner.options.Name, func(now *state.Session) { c, over = now.Children[request] })
	return c, over
}

// requestOfChild returns the request to the operator, as the status shows it.
func (s *toolSession) requestOfChild(asked state.Asked) approval.Request {
	return approval.Request{
		Session: s.runner.records, Reason: approval.ForChild, Since: asked.Since,
		Pending: task.Pending{
			ID: asked.ID, Kind: task.PendingDelegation, Agent: asked.Delegation.Agent,
			Args: asked.Delegation.Args, Digest: asked.Digest,
		},
	}
}

// resultOfChild returns the result of a child Run, as the result of the call that requested it.
func resultOfChild(agent string, c journal.Child) tool.Result {
	if c.Run == "" {
		return tool.Fail(fmt.Sprintf(ResultRefusedRun, agent, c.Message), AdviceAlone)
	}
	out := AgentEnd{Reason: task.Reason(c.Reason), Message: c.Message, Text: c.Text}
	if c.Output != "" {
		out.Output = json.RawMessage(c.Output)
	}
	return ResultOf(agent, out)
}
