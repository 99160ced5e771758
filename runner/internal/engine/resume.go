package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/callreport"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// load reads the journal. It sets the meter to the higher of the usage in the journal and in the task, and applies
// grants. The tools of the Run's own session get the calls that succeeded before.
func (r *run) load() error {
	recall := recaller{report: r.config.Actor.Recall, before: r.config.Task.Continue}
	if err := r.state.Load(recall.apply); err != nil {
		return err
	}
	r.state.View(func(before *state.Run) {
		r.meter = meter.New(r.clock, r.config.Task.Limits, r.config.Task.Meter.Max(before.Meter))
		r.meter.Extend(before.Granted.Steps, before.Granted.Tokens, before.Granted.CostMicroUSD)
		r.restarts = before.Restarts
		if before.Begun {
			r.status.shown.Effects = task.EffectsBegun
		}
	})
	r.root.records.account = r.meter
	r.status.beginStep("", task.KindModel, r.config.Actor.Model.Name, r.config.Now())
	return nil
}

// A recaller passes calls that succeeded before to the tools of a session, while the journal is read. Calls of hidden
// steps are included. Calls of another Run that is continued are not: its files may not be those of this Run.
type recaller struct {
	session string
	before  *task.Continue // until its records end; nil: they are those of this Run
	report  func(name string, args json.RawMessage)
	calls   []step.Call // of the last turn
}

func (r *recaller) apply(rec journal.Record) {
	if r.before != nil {
		if h := rec.Header; h != nil && h.Continues != nil && h.Continues.RunUID == r.before.RunUID {
			r.before = nil
		}
		return
	}
	if r.report == nil || rec.Session != r.session {
		return
	}
	switch {
	case rec.Intent != nil:
		r.setFinalArgs(*rec.Intent)
	case rec.Step == nil:
	case rec.Kind == journal.KindResult:
		r.reportSuccess(*rec.Step)
	case rec.Step.Role == step.RoleAssistant:
		r.calls = slices.Clone(rec.Step.Calls)
	}
}

// setFinalArgs keeps the arguments with which a call was executed.
func (r *recaller) setFinalArgs(i journal.Intent) {
	for n := range r.calls {
		if r.calls[n].ID == i.CallID {
			r.calls[n].Args = i.Args
		}
	}
}

func (r *recaller) reportSuccess(result step.Step) {
	for _, call := range r.calls {
		if call.ID == result.CallID && !result.IsError {
			r.report(call.Name, call.Args)
		}
	}
}

// recall passes calls that succeeded before to the tools of a session below the Run's own, which are made when it is
// resumed.
func (s *session) recall() error {
	if s.records.name == "" || s.actor.Recall == nil {
		return nil
	}
	c := recaller{session: s.records.name, report: s.actor.Recall, before: s.run.config.Task.Continue}
	for rec, err := range s.run.state.Records() {
		if err != nil {
			return fmt.Errorf("taking up the session %s: %w", s.records.name, err)
		}
		c.apply(rec)
	}
	return nil
}

// resume settles calls that an earlier runner left open, and opens or continues the session.
func (s *session) resume(ctx context.Context) error {
	st := s.records.read()
	turnRouting{s.model}.resume(st)
	if err := s.chargeLost(st.Asked, st.AskedAt); err != nil {
		return err
	}
	if err := s.calls.SettleLost(st); err != nil {
		return err
	}
	switch {
	case st.Last == 0 && st.Before != nil:
		return task.End(task.ReasonNothingToContinue, "Run %s ended before its prompt was said, and has nothing to continue: create a Run with its prompt instead", st.Before.Run)
	case st.Last == 0:
		return s.open(ctx, state.Before{})
	}
	if err := s.recall(); err != nil || st.Before != nil {
		return err // the loop opens the session of another Run when its calls have results
	}
	s.opened = true
	if err := s.recordNotice(s.resumeNotice()); err != nil || !s.isRetry() {
		return err
	}
	now := s.records.read()
	if st.Ended != "" && st.Ended != string(task.ReasonFinished) && len(now.Open()) == 0 {
		// The session had ended, so it needs a new message before it can continue. Open calls need their results first:
		// no message may come between a call and its result.
		s.checkSpace()
		return s.nudge(s.runnerNotes(), step.NoteRunner)
	}
	return nil
}

// maxLost bounds the message about lost processes.
const maxLost = 4 << 10

// isRetry reports whether the session continues after a failed attempt and has no notice of that yet.
func (s *session) isRetry() bool {
	return s.records.name == "" && s.run.config.Task.Retry != "" && s.run.restarts == 0
}

// resumeNotice returns the message to a resumed session.
func (s *session) resumeNotice() string {
	var notices []string
	if s.isRetry() {
		notices = append(notices, fmt.Sprintf(noteAttempt, s.run.config.Task.Retry, s.run.config.Task.Attempt))
	}
	files := noteFiles
	if len(s.run.config.LostFiles) > 0 {
		files = fmt.Sprintf(noteLostFiles, strings.Join(s.run.config.LostFiles, " and "))
	}
	switch {
	case len(s.run.config.Lost) > 0:
		list := redact.Printable(s.run.config.Redact.String("- " + strings.Join(s.run.config.Lost, "\n- ")))
		notices = append(notices, fmt.Sprintf(noteLost, task.Cut(list, maxLost), files))
	case len(s.run.config.LostFiles) > 0:
		notices = append(notices, files)
	}
	return strings.Join(notices, "\n")
}

// open begins a session, or continues that of another Run: the layers see its prompt first.
func (s *session) open(ctx context.Context, before state.Before) error {
	o := middleware.SessionStart{Scope: s.records.scope, Prompt: s.prompt}
	starting, report := callreport.New(ctx)
	if err := s.actor.Stack.Start(starting, &o); err != nil {
		return endOfVeto(err)
	}
	s.opened = true
	prompt := o.Prompt
	if s.records.name == "" {
		prompt = s.completePrompt(ctx, prompt, before)
	}
	s.reportSchemas()
	first := s.records.userStep(prompt, "")
	if before.Run != "" && o.Prompt == "" {
		first.Note = step.NoteRunner
	}
	first.Hooks = report.Hooks()
	if err := s.showPromptFiles(ctx, &first); err != nil {
		return err
	}
	return s.records.recordStep(first, nil)
}

// maxSchemas bounds how many changed schemas of one session are emitted as events.
const maxSchemas = 20

// reportSchemas emits events for tools whose schema differs from the owner's.
func (s *session) reportSchemas() {
	if s.actor.Tools == nil {
		return
	}
	changed := int64(0)
	for _, spec := range s.actor.Tools.Specs() {
		t, ok := s.actor.Tools.Find(spec.Name)
		if !ok || len(t.Internal.Facts().SchemaChanges) == 0 {
			continue
		}
		if changed++; changed > maxSchemas {
			continue
		}
		change := strings.Join(t.Internal.Facts().SchemaChanges, "; ")
		s.records.Emit(fmt.Sprintf("The schema of the tool %s is sent in a form that providers accept: %s", spec.Name, task.Cut(change, task.MaxSummary)),
			events.Repaired{Step: s.records.next(), Kind: string(model.RepairToolSchema), Change: change, Tool: spec.Name})
	}
	if changed > 0 {
		s.records.account.Add(func(m *step.Meter) { m.Repairs += changed })
	}
}

// completePrompt adds to the prompt of the Run's own session.
func (s *session) completePrompt(ctx context.Context, prompt string, before state.Before) string {
	if before.Run != "" {
		return strings.TrimSpace(prompt + "\n\n" + s.continuedNote(before))
	}
	if s.run.config.BuildPrompt != nil {
		prompt = s.run.config.BuildPrompt(ctx, prompt, s.calls.Allows)
	}
	if s.run.config.Task.Retry == "" {
		return prompt
	}
	return strings.Join([]string{prompt, fmt.Sprintf(noteFresh, s.run.config.Task.Retry, s.run.config.Task.Attempt)}, "\n\n")
}

// continuedNote says which Run is continued, and what is left of it.
func (s *session) continuedNote(before state.Before) string {
	files, forkFiles := noteCopied, noteForkCopy
	if c := s.run.config.Task.Continue; c != nil && c.Workspace == task.ContinueFresh {
		files = fmt.Sprintf(noteNoFiles, task.Workspace)
		forkFiles = files
	}
	if before.Step > 0 {
		return fmt.Sprintf(noteForked, before.Run, before.Step, forkFiles)
	}
	return fmt.Sprintf(noteContinued, before.Run, cmp.Or(before.Ended, "no result"), files)
}

// endOfVeto returns the end that belongs to the veto of a layer. Any other error is returned unchanged.
func endOfVeto(err error) error {
	if veto, ok := errors.AsType[*middleware.VetoError](err); ok {
		return task.End(task.ReasonDenied, "%s", veto.Error())
	}
	return err
}

// chargeLost charges a model call that a crash interrupted. Its usage is not known and is estimated, at the prices of
// the time at which it was sent.
func (s *session) chargeLost(asked *journal.Intent, at time.Time) error {
	if asked == nil {
		return nil
	}
	var before step.Usage
	if asked.Before != nil {
		before = *asked.Before
	}
	lost := step.Usage{InputTokens: asked.InputTokens - before.InputTokens - before.OutputTokens, Estimated: true}
	spent := before.Plus(s.actor.Model.priced(asked.Name, lost, at))
	s.records.account.Add(func(m *step.Meter) {
		m.Errors++
		m.Usage = m.Usage.Plus(spent)
	})
	if err := s.records.Record(journal.Record{Kind: journal.KindMeter}); err != nil {
		return fmt.Errorf("recording a lost model call: %w", err)
	}
	return nil
}
