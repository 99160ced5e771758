package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// Delegate implements [tool.Session].
func (j *job) Delegate(ctx context.Context, d tool.Delegation) (tool.Result, error) {
	if err := j.enter(ctx); err != nil {
		return tool.Result{}, err
	}
	defer j.leave()
	s := j.session
	d.Call = j.call.ID
	if d.Run {
		return j.commission(ctx, d)
	}
	if d.Agent == "" {
		d.Agent, d.Own = s.Agent.Name, true
	}
	child, refused := s.child(d)
	if refused != nil {
		return tool.Result{Error: refused}, nil
	}
	if !j.only() {
		return tool.Fail(resultTwice), nil
	}
	// What works now is the other session, not the call that waits for it.
	s.activity.Leave()
	defer s.activity.Enter()
	ctx, cancel := within(ctx)
	defer cancel()
	ctx, off := child.account.Deadline(ctx)
	defer off()
	out, err := child.serve(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	return resultOf(child.Agent.Name, out), nil
}

// only says whether the call is in no other session already.
func (j *job) only() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.inside == 1
}

// child is the session that a call opens, or why it may not.
func (s *session) child(d tool.Delegation) (*session, *tool.Error) {
	scope := step.Scope{Depth: s.scope.Depth + 1, Parent: d.Call, Agent: d.Agent}
	if int64(scope.Depth) > s.deepest {
		return nil, &tool.Error{Message: fmt.Sprintf(resultDeep, s.deepest)}
	}
	if s.Actors == nil {
		return nil, &tool.Error{Message: resultNoAgents}
	}
	actor, err := s.Actors(d)
	if err != nil {
		return nil, &tool.Error{Message: s.Redact.String(err.Error())}
	}
	child := newSession(s.run, d.Call, scope, *actor)
	child.parent, child.prompt = s, d.Prompt
	child.deepest = s.deepest
	if l := actor.Agent.Limits; l != (task.Limits{}) {
		child.deepest = min(s.deepest, int64(scope.Depth)+l.Depth) // the lower of both
	}
	child.account = s.account.Open(actor.Agent.Limits, child.read().Used)
	return child, nil
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

// serve works until the session ends. An error ends the whole Run, or leaves
// the call open that opened the session.
func (s *session) serve(ctx context.Context) (out Outcome, err error) {
	defer caught(func(crashed error) { err = crashed })
	last := s.read().Last
	s.Emit(fmt.Sprintf("Agent %s begins with %d steps", s.Agent.Name, last), events.ChildStarted{
		Session: s.name, Agent: s.Agent.Name, Model: s.Model.Name, Steps: last,
	})
	out, err = s.work(ctx)
	if err != nil {
		end, ok := asEnd(err)
		if !ok || general(end.Reason) {
			return out, err
		}
		out = s.failed(end)
	}
	if left := approval.EndOf(out.Reason); left != nil {
		return out, left
	}
	out = s.end(ctx, out)
	used := s.account.Read()
	s.Emit(fmt.Sprintf("Agent %s ended: %s", s.Agent.Name, out.Reason), events.ChildFinished{
		Session: s.name, Agent: s.Agent.Name, Reason: out.Reason, Counts: task.CountsOf(used), Usage: task.UsageOf(used),
	})
	if out.Reason == task.ReasonStopped {
		return out, signals.ErrStopped
	}
	return out, nil
}

// general says whether an end is of the whole Run, whichever session met it.
func general(r task.Reason) bool {
	switch r {
	case task.ReasonRunnerFailed, task.ReasonStorageFull, task.ReasonFenced, task.ReasonSecretMissing:
		return true
	case task.ReasonInterrupted, task.ReasonWaiting, task.ReasonPaused:
		return true
	default:
		return false
	}
}

// resultOf is how an agent ended, as the call reads it that handed it work.
func resultOf(agent string, out Outcome) tool.Result {
	switch {
	case out.Reason == task.ReasonFinished && out.Output != nil:
		return tool.Result{Text: string(out.Output)}
	case out.Reason == task.ReasonFinished:
		return tool.Result{Text: out.Text}
	case out.Reason == task.ReasonRejected:
		return tool.Fail(fmt.Sprintf(resultRejected, agent, cmp.Or(out.Text, out.Message)))
	}
	message := fmt.Sprintf(resultChild, agent, out.Reason, out.Message)
	if out.Text == "" {
		return tool.Fail(message)
	}
	return tool.Fail(message, fmt.Sprintf(resultPartial, out.Text))
}
