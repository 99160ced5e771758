package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// stopFor is how long the layers of a session may take to stop.
const stopFor = 10 * time.Second

// A session is one agent at work. What was said in it is in the book.
type session struct {
	run     *run
	actor   Actor
	name    string // the call that opened it; empty: the Run's own
	scope   step.Scope
	deepest int64 // the depth at which sessions below it end
	account *meter.Account
	prompt  string // the first that its agent is told
	system  string
	tools   []step.Tool
	// answer is the model call behind the layers.
	answer middleware.ModelFunc
	calls  *toolcall.Runner

	turn   exchange // the model call under way
	opened bool     // the layers have started
	warned bool     // the model knows that the disk is full
	notes  []string // what the runner has to say before the model's next turn
	// squeezes are the compactions in a row that were not enough; overflow is why
	// the provider refused the last request.
	squeezes int
	overflow *model.ContextTooLongError
	limited  int // how often in a row the provider asked to wait
}

// An origin is where a session comes from.
type origin struct {
	name   string // the call that opened it; empty: the Run's own
	scope  step.Scope
	parent *session // whose call that is; nil: the Run's own has none
}

func newSession(r *run, o origin, a Actor) *session {
	s := &session{run: r, actor: a, name: o.name, scope: o.scope, system: r.config.Redact.String(a.Agent.Instructions)}
	if a.Tools != nil {
		s.tools = slices.Clip(a.Tools.Specs())
	}
	s.answer = a.Stack.Model(s.converse)
	options := toolcall.Options{
		Name: o.name, Scope: o.scope, Agent: a.Agent.Name, Parallel: a.Agent.ParallelTools,
		Tools: a.Tools, Stack: a.Stack, Policy: a.Policy,
	}
	if o.parent != nil {
		options.Parent = o.parent.calls
	}
	s.calls = toolcall.NewRunner(&r.toolcalls, s, options)
	return s
}

// Account implements [toolcall.Session].
func (s *session) Account() *meter.Account { return s.account }

// work takes up the session and works until it ends.
func (s *session) work(ctx context.Context) (Outcome, error) {
	s.run.activity.Enter()
	defer s.run.activity.Leave()
	if s.run.signals().Paused {
		if err := s.SafePoint(ctx); err != nil {
			return Outcome{}, causeOf(ctx, err)
		}
	}
	if err := s.takeUp(ctx); err != nil {
		return Outcome{}, causeOf(ctx, err)
	}
	return s.loop(ctx)
}

// loop is the whole of an agent: decide, do, decide again.
func (s *session) loop(ctx context.Context) (Outcome, error) {
	for {
		v, err := s.view()
		if err != nil {
			return Outcome{}, err
		}
		v.paused = v.paused && ctx.Err() == nil // what is over is not held
		act := next(v)
		if asks := act.kind == ask || act.kind == compact; asks && ctx.Err() != nil {
			return Outcome{}, context.Cause(ctx)
		}
		switch act.kind {
		case end:
			return act.outcome, nil
		case hold:
			err = s.hold(ctx)
		case execute:
			err = s.calls.Execute(ctx, act.calls)
		case say:
			err = s.nudge(act.text, act.note)
		case listen:
			err = s.listen(act.messages)
		case compact:
			err = s.compact(ctx, v, act.cut)
		case raise:
			err = s.raise(ctx, *v.reached)
		case ask:
			err = s.ask(ctx)
		}
		if err != nil {
			return Outcome{}, causeOf(ctx, err)
		}
	}
}

// view is all that next may know.
func (s *session) view() (view, error) {
	now := s.run.signals()
	v := view{
		Session:  s.read(),
		schema:   len(s.actor.Agent.OutputSchema) > 0,
		reached:  s.account.Reached(),
		more:     s.run.config.Task.Limits.Ask && s.run.config.CanAsk,
		notes:    s.noted(),
		overflow: s.overflow,
		squeezes: s.squeezes,
		leaving:  s.run.requests.Leaving(),
		paused:   now.Paused,
		stop:     now.Stopped,
	}
	v.used, v.trigger = s.crowding(v.Steps)
	var err error
	if s.name == "" {
		v.messages, err = s.run.requests.ApplyDecisions(s, now.Decisions)
	}
	return v, err
}

// read is the session as it stands. The steps in it never change; more are
// added, or others stand for them.
func (s *session) read() state.Session { return s.run.state.Session(s.name) }

// Record appends to the journal and, once it is there, to the state.
func (s *session) Record(rec journal.Record) error { return s.RecordUse(rec, step.Usage{}) }

// RecordUse records what was used elsewhere together with what it was used for. The
// account has it only once the journal does: whatever is told or recorded in
// between, a resume neither loses nor doubles it.
func (s *session) RecordUse(rec journal.Record, used step.Usage) error {
	return s.run.state.Record(func() journal.Record {
		total := s.run.meter.Read()
		total.Usage = total.Usage.Plus(used)
		rec.Session, rec.Meter, rec.Accounts = s.name, &total, s.account.Chain()
		for i := range rec.Accounts {
			rec.Accounts[i].Usage = rec.Accounts[i].Usage.Plus(used)
		}
		rec.At = s.run.config.Now().UTC()
		return rec
	}, func() {
		s.account.Add(func(m *step.Meter) { m.Usage = m.Usage.Plus(used) })
	})
}

// recordStep gives a step its place and records it.
func (s *session) recordStep(st step.Step, d *journal.Decision) error {
	st.Seq, st.Scope = s.read().Last+1, s.scope
	if err := s.Record(journal.Record{Kind: journal.KindStep, Step: &st, Decision: d}); err != nil {
		return fmt.Errorf("recording step %d: %w", st.Seq, err)
	}
	s.emitStep(st)
	return nil
}

// said is what somebody says to the model, as a step.
func (s *session) said(text string, note step.Note) step.Step {
	return step.Step{
		Role: step.RoleUser, Note: note, At: s.run.config.Now().UTC(),
		Parts: []step.Part{{Kind: step.PartText, Text: s.run.config.Redact.String(text)}},
	}
}

// tell records what is said to the model.
func (s *session) tell(text string, note step.Note) error {
	return s.recordStep(s.said(text, note), nil)
}

// end tells the layers and the journal how the session ended, where it did.
func (s *session) end(ctx context.Context, out Outcome) Outcome {
	if out.Text == "" && out.Output == nil { // an output is the answer, not what was said on the way to it
		out.Text = lastText(s.read().Steps)
	}
	if s.account == nil || !out.Reason.Commits() {
		return out
	}
	if s.opened {
		s.stopLayers(ctx, middleware.SessionEnd{Scope: s.scope, Reason: string(out.Reason), Text: out.Text})
	}
	// Only the next attempt reads it; without it, that one begins with the same
	// question, which is no harm.
	_ = s.Record(journal.Record{Kind: journal.KindMark, Mark: &journal.Mark{Type: journal.MarkEnded, Text: string(out.Reason)}})
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
		s.Emit("Stopping the layers failed: "+err.Error(), events.StateChanged{State: stateClosing})
	}
}

// Emit tells what happens in the session.
func (s *session) Emit(message string, p events.Payload) {
	s.run.config.Events.Emit(s.scope, message, p)
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

// label is a name as the status shows it: of a session below the Run's own,
// behind its agent's.
func (s *session) label(name string) string {
	if s.name == "" {
		return name
	}
	return task.Cut(s.actor.Agent.Name+"/"+name, maxName)
}
