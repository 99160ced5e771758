package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// maxName bounds names in the last steps of the status. Models may write longer ones, and Models may have longer ones.
const maxName = 64

// A statusBuilder keeps what the Run's status shows of a session: bounded, however long
// the session is.
type statusBuilder struct {
	mu        sync.Mutex
	shown     task.Progress
	effects   sync.Mutex // held while the beginning of effects is being told
	warned    map[string]bool
	lastState string // the state that was reported to the operator last
}

// setReportedState keeps the state that is reported to the operator.
func (b *statusBuilder) setReportedState(to string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lastState = to
}

// reportedState returns the state that was last reported to the operator.
func (b *statusBuilder) reportedState() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lastState
}

func newStatusBuilder(c Config) *statusBuilder {
	return &statusBuilder{
		shown:  task.Progress{Version: task.Version, Attempt: c.Task.Attempt, Model: c.Actor.Model.Name},
		warned: map[string]bool{},
	}
}

// beginStep shows a turn or a call as the current step.
func (r *run) beginStep(id, kind, name string) {
	id = task.ShownID(id)
	r.status.beginStep(id, kind, name, r.config.Now())
	if r.config.StepBegan != nil {
		r.config.StepBegan(id)
	}
	r.config.Report.Report(r.takeProgress)
}

// beginStep shows a step as the current one. Its time is when it was first shown.
func (b *statusBuilder) beginStep(id, kind, name string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.shown.Step; s != nil && s.ID == id && s.Kind == kind && s.Name == name {
		return
	}
	b.shown.Step = &task.Current{ID: id, Kind: kind, Name: name, StartedAt: at.UTC().Format(time.RFC3339)}
}

// addRecent adds a step to the last ones.
func (b *statusBuilder) addRecent(r task.Recent) {
	r.ID, r.Name = task.ShownID(r.ID), task.Cut(r.Name, maxName)
	r.Summary = task.Cut(redact.Printable(r.Summary), task.MaxRecentText)
	b.mu.Lock()
	defer b.mu.Unlock()
	// What was given out stays as it is: more is only ever put behind it.
	b.shown.Recent = append(b.shown.Recent, r)
	b.shown.Recent = b.shown.Recent[max(len(b.shown.Recent)-task.MaxRecent, 0):]
}

// setModel shows which Model answered last, and when.
func (b *statusBuilder) setModel(model string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shown.Model, b.shown.AnsweredAt = model, at.UTC().Format(time.RFC3339)
}

// clearStep shows that no step is active.
func (b *statusBuilder) clearStep() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shown.Step = nil
}

// beginEffects shows that effects begin. first is true if that was not shown before; other callers then wait until
// release is called.
func (b *statusBuilder) beginEffects() (first bool, release func()) {
	b.effects.Lock()
	b.mu.Lock()
	defer b.mu.Unlock()
	first = b.shown.Effects == ""
	b.shown.Effects = task.EffectsBegun
	return first, b.effects.Unlock
}

// revertEffects reverts beginEffects after the report of it failed.
func (b *statusBuilder) revertEffects() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shown.Effects = ""
}

// markWarned reports whether this is the first warning that most of a limit is used.
func (b *statusBuilder) markWarned(limit string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.warned[limit] {
		return false
	}
	b.warned[limit] = true
	return true
}

// clearWarnings forgets the warnings, because limits were raised.
func (b *statusBuilder) clearWarnings() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.warned)
}

// takeProgress returns the progress for a reporter. The reporter makes one call at a time, and the state in its result
// counts as reported.
func (r *run) takeProgress() task.Progress {
	p := r.progress()
	r.status.setReportedState(p.State)
	return p
}

// progress returns the status with current numbers. It changes nothing.
func (r *run) progress() task.Progress {
	r.status.mu.Lock()
	p := r.status.shown
	r.status.mu.Unlock()
	used := r.config.Task.Meter
	if r.meter != nil {
		used = r.meter.Read()
	}
	p.Counts, p.Usage = task.CountsOf(used), task.UsageOf(used)
	r.state.View(func(now *state.Run) {
		if now.Delegates {
			p.Usage = p.Usage.WithChildRuns(used)
		}
	})
	p.State, p.ModelWait = r.requests.State(), r.requests.ModelWait()
	p.Pending, p.Decided = r.requests.Pending(), r.decided()
	return p
}

// decided returns the last Decisions that the runner acted on.
func (r *run) decided() (all []task.Decided) {
	r.state.View(func(now *state.Run) {
		for _, d := range now.Decided {
			all = append(all, decidedOf(d))
		}
	})
	return all
}

// maxType bounds the type of a decision, which may be an unknown one.
const maxType = 16

func decidedOf(d journal.Decision) task.Decided {
	return task.Decided{Name: d.Name, Request: d.Request, Type: task.Cut(d.Type, maxType), Digest: d.Digest, Refused: d.Refused}
}

// ShowStarted implements [toolcall.Status].
func (s *session) ShowStarted(call step.Call, args json.RawMessage) {
	s.run.beginStep(call.ID, task.KindTool, s.records.label(call.Name))
	s.records.Emit(fmt.Sprintf("Calling %s %s", call.Name, oneLine(args)),
		events.CallStarted{ID: call.ID, Name: call.Name, Args: args})
}

// ShowFinished implements [toolcall.Status].
func (s *session) ShowFinished(call step.Call, result step.Step, line string) {
	took := result.Duration.Milliseconds()
	s.run.status.addRecent(task.Recent{
		ID: call.ID, Kind: task.KindTool, Name: s.records.label(call.Name),
		Summary: line, DurationMs: took,
	})
	s.records.Emit(fmt.Sprintf("%s: %s", call.Name, line), events.CallFinished{
		ID: call.ID, Name: call.Name, IsError: result.IsError, Summary: line, DurationMs: took,
	})
	s.records.emitStep(result)
	s.run.config.Report.Report(s.run.takeProgress)
}

// ShowDenied implements [toolcall.Status].
func (s *session) ShowDenied(call step.Call, denied toolcall.Denial) {
	if s.run.config.Denied != nil {
		s.run.config.Denied(s.records.label(call.Name), denied.By, task.ShownID(call.ID))
	}
	s.records.Emit(deniedMessage(call.Name, denied), events.CallDenied{ID: call.ID, Name: call.Name, By: denied.By, Rule: denied.Rule, Step: step.SeqOf(call.ID)})
}

// deniedMessage describes what denied a call.
func deniedMessage(name string, denied toolcall.Denial) string {
	switch {
	case denied.By == task.DeniedByApprover:
		return name + " was denied by a user"
	case denied.By == task.DeniedByTimeout:
		return name + " was denied because no user decided"
	case denied.By == task.DeniedByHook:
		return name + " was denied by the hook " + denied.Rule
	case denied.Rule == "":
		return name + " was denied by the policy"
	}
	return name + " was denied by policy rule " + denied.Rule
}

// BeginEffects implements [toolcall.Status]. It returns after the operator has recorded that effects begin.
func (s *session) BeginEffects(ctx context.Context) error {
	first, release := s.run.status.beginEffects()
	defer release()
	if !first {
		return nil
	}
	if err := s.run.await(ctx, s.run.config.Report.Commit); err != nil {
		s.run.status.revertEffects()
		return fmt.Errorf("reporting that effects begin: %w", err)
	}
	return nil
}

// oneLine returns arguments as one line for users.
func oneLine(args json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, args) != nil {
		return ""
	}
	return task.Cut(b.String(), task.MaxSummary)
}

// summarize returns an answer as one line.
func summarize(s step.Step) string {
	if text := toolcall.FirstLine(s.Text()); text != "" {
		return text
	}
	names := make([]string, len(s.Calls))
	for i, c := range s.Calls {
		names[i] = c.Name
	}
	if len(names) == 0 {
		return "(empty)"
	}
	return "calls " + strings.Join(names, ", ")
}
