package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// stopFor is how long the layers of a session may take to stop.
const stopFor = 10 * time.Second

// A session is one agent at work. The state has its steps.
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

// An origin is the delegation that a session comes from.
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

// work resumes the session and works until it ends.
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

// loop is the agent loop: decide, execute, decide again.
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

// route chooses the Model of the next turn. If it reports that another Model was chosen, the next action must be
// decided again with that Model's context window. An error means that the session is over.
func (s *session) route(ctx context.Context, v view, act action) (bool, error) {
	if act.kind != askModel && act.kind != compactSession {
		return false, nil
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	return turnRouting{s.model}.route(ctx, v)
}

// execute executes an action.
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
	case sayPrompt:
		return s.open(ctx, *v.Before)
	case askModel:
		if err := s.run.awaitAccepted(ctx); err != nil {
			return err
		}
		return s.model.ask(ctx)
	case endSession:
	}
	return nil
}

// SafePoint waits while the Run is paused, unless the runner can leave. It returns when something new may begin, or an
// error that says why nothing may.
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

// applyDecisions applies new Decisions in the Run's own session, and returns the messages to it.
func (s *session) applyDecisions(now signals.Signals) ([]task.Decision, error) {
	if s.records.name != "" {
		return nil, nil
	}
	return s.run.requests.ApplyDecisions(s.records, now.Decisions)
}

// view returns everything that next depends on. It changes nothing.
func (s *session) view(now signals.Signals, left *task.EndError, messages []task.Decision) view {
	v := view{
		Session:     s.records.read(),
		place:       s.actor.Place,
		schema:      len(s.actor.Agent.OutputSchema) > 0,
		reached:     s.records.account.Reached(),
		canGrant:    s.run.config.Task.Limits.Ask && s.run.config.CanAsk,
		notes:       s.runnerNotes(),
		prompt:      s.prompt,
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

// end reports the end of the session to the layers and the journal, if it has ended.
func (s *session) end(ctx context.Context, out Outcome) Outcome {
	if out.Text == "" && out.Output == nil { // an output is the answer, not what was said on the way to it
		st := s.records.read()
		out.Text = lastText(st.Steps, st.TakenOver)
	}
	if s.records.account == nil || !out.Reason.Commits() {
		return out
	}
	if s.opened {
		s.stopLayers(ctx, middleware.SessionEnd{Scope: s.records.scope, Reason: string(out.Reason), Text: out.Text})
	}
	// Only the next attempt reads this record. Without it, that attempt starts with the same question again, which does
	// no harm.
	_ = s.records.Record(journal.Record{Kind: journal.KindMark, Mark: &journal.Mark{Type: journal.MarkEnded, Text: string(out.Reason)}})
	return out
}

// stopLayers reports the end to the layers, and waits at most stopFor.
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

// lastText returns the last text of the model after a step.
func lastText(steps []step.Step, after int64) string {
	for _, s := range slices.Backward(steps) {
		if text := s.Text(); s.Seq > after && s.Role == step.RoleAssistant && text != "" {
			return text
		}
	}
	return ""
}

// recordMessages passes messages of users to the model, each with the Decision that it came in. They are one record, so
// that each is passed on exactly once.
func (s *session) recordMessages(ctx context.Context, messages []task.Decision) error {
	for _, d := range messages {
		text := task.Cut(s.run.config.Redact.String(d.Value), toolcall.MaxResult) // redacted whole: a piece of a secret would not be known
		st := s.records.userStep(text, step.NoteMessage)
		for _, path := range d.Images {
			part := s.calls.ShowPath(ctx, path)
			if part.File == nil {
				part.Text = "\n" + part.Text
			}
			st.Parts = append(st.Parts, part)
		}
		said := journal.Decision{Name: d.Name, By: task.Cut(s.run.config.Redact.String(d.By), approval.MaxField), Type: d.Type}
		if err := s.records.recordStep(st, &said); err != nil {
			return err
		}
		s.run.requests.ReportDecision(s.records, said)
	}
	return nil
}

// showPromptFiles adds the files that the Run shows with its prompt. A file that cannot be shown ends the Run: without
// it the model would work on wrong input.
func (s *session) showPromptFiles(ctx context.Context, first *step.Step) error {
	if s.records.name != "" {
		return nil
	}
	var size int64
	for i, path := range s.run.config.Task.Images {
		part, err := s.calls.LoadPath(ctx, path)
		if err != nil {
			return task.End(task.ReasonMisconfigured, "spec.images[%d] of the Run, %s, cannot be shown: %w", i, path, err)
		}
		if size += part.File.Size; size > model.MaxFileBytes {
			const mib = 1 << 20
			return task.End(task.ReasonMisconfigured, "spec.images of the Run have %.1f MiB up to spec.images[%d], %s, and at most %d MiB are sent in all. Show fewer or smaller files",
				float64(size)/mib, i, path, model.MaxFileBytes/mib)
		}
		first.Parts = append(first.Parts, part)
	}
	return nil
}

// recordNotice records a message to the model for its next turn, which may be in another attempt.
func (s *session) recordNotice(notice string) error {
	if notice == "" || slices.Contains(s.records.read().Notices, notice) {
		return nil
	}
	if err := s.records.Record(journal.Record{Kind: journal.KindMark, Mark: &journal.Mark{Type: journal.MarkNotice, Text: notice}}); err != nil {
		return fmt.Errorf("recording a notice to the model: %w", err)
	}
	return nil
}

// nudge records a message of the runner to the model.
func (s *session) nudge(text string, note step.Note) error {
	if note == step.NoteRunner {
		s.notes = nil
	} else {
		s.records.Emit("Notice to the model: "+text, events.Nudged{Text: text})
	}
	return s.records.recordMessage(text, note)
}

// runnerNotes returns the runner's messages to the model before its next turn.
func (s *session) runnerNotes() string {
	return strings.Join(append(slices.Clone(s.records.read().Notices), s.notes...), "\n")
}

// checkSpace adds one note if the workspace has little space left.
func (s *session) checkSpace() {
	if !s.warned && s.run.config.LowSpace != nil && s.run.config.LowSpace() {
		s.warned = true
		s.notes = append(s.notes, noteLowSpace)
	}
}

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

// newChild returns the session that a call opens, or an error that says why it may not.
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

// workAsChild works until the session ends. An error ends the whole Run, or leaves the call open that opened the
// session.
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

// endsRun reports whether a reason ends the whole Run, in whichever session it occurs.
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
