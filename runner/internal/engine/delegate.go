package engine

import (
	"context"
	"fmt"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// Delegate implements [toolcall.Session].
func (s *session) Delegate(ctx context.Context, asked tool.Delegation) (tool.Result, error) {
	d := Delegation{Delegation: asked, Own: asked.Agent == ""}
	if d.Own {
		d.Agent = s.actor.Agent.Name
	}
	child, refused := s.newChild(d)
	if refused != nil {
		return tool.Result{Error: refused}, nil
	}
	if child.actor.Close != nil {
		defer child.actor.Close()
	}
	ctx, off := child.records.account.Deadline(ctx, child.actor.Place)
	defer off()
	out, err := child.workAsChild(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	return toolcall.ResultOf(child.actor.Agent.Name, toolcall.AgentEnd{Reason: out.Reason, Message: out.Message, Text: out.Text, Output: out.Output}), nil
}

// Below implements [toolcall.Session].
func (s *session) Below(name string) *toolcall.Runner {
	now := s.run.state.Session(name)
	below := newSession(s.run, origin{name: name, scope: now.Steps[len(now.Steps)-1].Scope, parent: s}, Actor{})
	below.records.account = s.records.account.Open(task.Limits{}, now.Used)
	return below.calls
}

// newChild returns the session that a call opens, or why it may not.
func (s *session) newChild(d Delegation) (*session, *tool.Error) {
	scope := step.Scope{Depth: s.records.scope.Depth + 1, Parent: d.Call, Agent: d.Agent}
	if int64(scope.Depth) > s.deepest {
		return nil, &tool.Error{Message: fmt.Sprintf(resultDeep, s.deepest)}
	}
	if s.run.config.Actors == nil {
		return nil, &tool.Error{Message: resultNoAgents}
	}
	actor, err := s.run.config.Actors(d)
	if err != nil {
		return nil, &tool.Error{Message: s.run.config.Redact.String(err.Error())}
	}
	child := newSession(s.run, origin{name: d.Call, scope: scope, parent: s}, *actor)
	child.prompt = d.Prompt
	child.deepest = s.deepest
	if l := actor.Agent.Limits; l != (task.Limits{}) {
		child.deepest = min(s.deepest, int64(scope.Depth)+l.Depth) // the lower of both
	}
	child.records.account = s.records.account.Open(actor.Agent.Limits, child.records.read().Used)
	return child, nil
}

// workAsChild works until the session ends. An error ends the whole Run, or leaves
// the call open that opened the session.
func (s *session) workAsChild(ctx context.Context) (out Outcome, err error) {
	defer toolcall.Recover(func(crashed error) { err = crashed })
	last := s.records.read().Last
	s.records.Emit(fmt.Sprintf("Agent %s begins with %d messages", s.actor.Agent.Name, last), events.ChildStarted{
		Session: s.records.name, Agent: s.actor.Agent.Name, Model: s.actor.Model.Name, Steps: last,
	})
	out, err = s.work(ctx)
	if err != nil {
		end, ok := asEnd(err)
		if !ok || endsRun(end.Reason) {
			return out, err
		}
		out = s.run.failed(end)
	}
	if left := approval.EndOf(out.Reason); left != nil {
		return out, left
	}
	out = s.end(ctx, out)
	used := s.records.account.Read()
	s.records.Emit(fmt.Sprintf("Agent %s ended: %s", s.actor.Agent.Name, out.Reason), events.ChildFinished{
		Session: s.records.name, Agent: s.actor.Agent.Name, Reason: out.Reason, Counts: task.CountsOf(used), Usage: task.UsageOf(used),
	})
	if out.Reason == task.ReasonStopped {
		return out, signals.ErrStopped
	}
	return out, nil
}

// endsRun reports whether an end is of the whole Run, whichever session met it.
func endsRun(r task.Reason) bool {
	switch r {
	case task.ReasonRunnerFailed, task.ReasonStorageFull, task.ReasonFenced, task.ReasonSecretMissing:
		return true
	case task.ReasonInterrupted, task.ReasonWaiting, task.ReasonPaused:
		return true
	default:
		return false
	}
}
