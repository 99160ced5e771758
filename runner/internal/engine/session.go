package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// stopFor is how long the layers of a session may take to stop.
const stopFor = 10 * time.Second

// A session is one agent at work. What was said in it is in the state.
type session struct {
	run     *run
	actor   Actor
	records *records
	model   *modelCaller
	calls   *toolcall.Runner
	deepest int64  // the depth at which sessions below it end
	prompt  string // the first user message

	opened bool     // the layers have started
	warned bool     // the model knows that the disk is full
	notes  []string // what the runner has to say before the model's next turn
}

// An origin is where a session comes from.
type origin struct {
	name   string // the call that opened it; empty: the Run's own
	scope  step.Scope
	parent *session // whose call that is; nil: the Run's own has none
}

func newSession(r *run, o origin, a Actor) *session {
	s := &session{run: r, actor: a, records: &records{run: r, name: o.name, scope: o.scope, agent: a.Agent.Name}}
	s.model = newModelCaller(r, &s.actor, s.records)
	options := toolcall.Options{
		Name: o.name, Scope: o.scope, Agent: a.Agent.Name, Parallel: a.Agent.ParallelTools,
		Tools: a.Tools, Stack: a.Stack, Policy: a.Policy,
	}
	if o.parent != nil {
		options.Parent = o.parent.calls
	}
	s.calls = toolcall.NewRunner(&r.toolcalls, s, s.records, options)
	return s
}

// work takes up the session and works until it ends.
func (s *session) work(ctx context.Context) (Outcome, error) {
	s.run.activity.Enter()
	defer s.run.activity.Leave()
	if s.run.signals().Paused {
		if err := s.SafePoint(ctx); err != nil {
			return Outcome{}, causeOf(ctx, err)
		}
	}
	if err := s.resume(ctx); err != nil {
		return Outcome{}, causeOf(ctx, err)
	}
	return s.loop(ctx)
}

// loop is the whole of an agent: decide, do, decide again.
func (s *session) loop(ctx context.Context) (Outcome, error) {
	defer s.model.stopWaiting()
	for {
		s.checkSpace()
		now, left := s.run.signals(), s.run.requests.Leave()
		messages, err := s.applyDecisions(now)
		if err != nil {
			return Outcome{}, err
		}
		v := s.view(now, left, messages)
		v.paused = v.paused && ctx.Err() == nil // what is over is not held
		act := next(v)
		if act.kind == endSession {
			return act.outcome, nil
		}
		if again, err := s.route(ctx, v, act); err != nil {
			return Outcome{}, causeOf(ctx, err)
		} else if again {
			continue
		}
		if err := s.execute(ctx, v, act); err != nil {
			return Outcome{}, causeOf(ctx, err)
		}
	}
}

// route chooses the Model of the turn that is about to begin. It reports whether another one
// was chosen, so that what comes next is decided again by its context window, and returns an error
// if the session is over.
func (s *session) route(ctx context.Context, v view, act action) (bool, error) {
	if act.kind != askModel && act.kind != compactSession {
		return false, nil
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	return turnRouting{s.model}.route(ctx, v)
}

// execute does what was decided.
func (s *session) execute(ctx context.Context, v view, act action) error {
	if act.kind != askModel && act.kind != compactSession {
		s.model.stopWaiting()
	}
	switch act.kind {
	case holdRun:
		return s.hold(ctx)
	case executeCalls:
		return s.calls.Execute(ctx, act.calls)
	case instructModel:
		return s.nudge(act.text, act.note)
	case addMessages:
		return s.recordMessages(ctx, act.messages)
	case compactSession:
		return s.model.compact(ctx, v, act.cut)
	case requestGrant:
		return s.requestGrant(ctx, *v.reached)
	case askModel:
		if err := s.run.awaitAccepted(ctx); err != nil {
			return err
		}
		return s.model.ask(ctx)
	case endSession:
	}
	return nil
}

// SafePoint is where the runner may leave, and where a Run is held whose runner may
// not. It returns once something new may begin, or why nothing may.
func (s *session) SafePoint(ctx context.Context) error {
	if left := s.run.requests.Leave(); left != nil {
		return left
	}
	if now := s.run.signals(); !now.Paused || now.Stopped {
		return nil
	}
	return s.hold(ctx)
}

// hold waits in place while the Run is paused.
func (s *session) hold(ctx context.Context) error {
	s.records.Emit("Paused by spec.desiredState", events.StateChanged{State: approval.StatePaused})
	defer func() { s.records.Emit("The work continues", events.StateChanged{State: stateWorking}) }()
	err := s.run.requests.Wait(ctx, approval.Wait{Reason: approval.ForPause, Until: func(now signals.Signals) (bool, error) {
		if left := s.run.requests.Leave(); left != nil {
			return false, left
		}
		return !now.Paused || now.Stopped, nil
	}})
	if err != nil && ctx.Err() != nil && !approval.Leaves(err) {
		return toolcall.Failure(ctx) // of a used-up duration what comes next knows
	}
	return err
}

// applyDecisions acts on new Decisions in the Run's own session, and returns the messages to it.
func (s *session) applyDecisions(now signals.Signals) ([]task.Decision, error) {
	if s.records.name != "" {
		return nil, nil
	}
	return s.run.requests.ApplyDecisions(s.records, now.Decisions)
}

// view returns all that next may know. It changes nothing.
func (s *session) view(now signals.Signals, left *task.EndError, messages []task.Decision) view {
	v := view{
		Session:     s.records.read(),
		place:       s.actor.Place,
		schema:      len(s.actor.Agent.OutputSchema) > 0,
		reached:     s.records.account.Reached(),
		canGrant:    s.run.config.Task.Limits.Ask && s.run.config.CanAsk,
		notes:       s.runnerNotes(),
		messages:    messages,
		overflow:    s.model.overflow,
		refused:     s.model.refused,
		compactions: s.model.compactions,
		sinceAnswer: s.model.compactedSince,
		leaving:     left,
		paused:      now.Paused,
		stopped:     now.Stopped,
	}
	v.textCall = s.model.textCall(v.last())
	if len(v.Open()) == 0 {
		v.contextSize = s.model.contextSize(v.Steps)
	}
	return v
}

// end tells the layers and the journal how the session ended, where it did.
func (s *session) end(ctx context.Context, out Outcome) Outcome {
	if out.Text == "" && out.Output == nil { // an output is the answer, not what was said on the way to it
		out.Text = lastText(s.records.read().Steps)
	}
	if s.records.account == nil || !out.Reason.Commits() {
		return out
	}
	if s.opened {
		s.stopLayers(ctx, middleware.SessionEnd{Scope: s.records.scope, Reason: string(out.Reason), Text: out.Text})
	}
	// Only the next attempt reads it; without it, that one begins with the same
	// question, which is no harm.
	_ = s.records.Record(journal.Record{Kind: journal.KindMark, Mark: &journal.Mark{Type: journal.MarkEnded, Text: string(out.Reason)}})
	return out
}

// stopLayers lets the layers see the end, for no longer than stopFor.
func (s *session) stopLayers(ctx context.Context, c middleware.SessionEnd) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopFor)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.actor.Stack.Stop(ctx, c) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = fmt.Errorf("the layers did not stop within %s", stopFor)
	}
	if err != nil {
		s.records.Emit("Stopping the layers failed: "+err.Error(), events.StateChanged{State: stateClosing})
	}
}

// lastText is the last that the model said.
func lastText(steps []step.Step) string {
	for _, s := range slices.Backward(steps) {
		if text := s.Text(); s.Role == step.RoleAssistant && text != "" {
			return text
		}
	}
	return ""
}
