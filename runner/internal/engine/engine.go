// Package engine is the agent loop: ask the model, run the tool calls that it asks for, until it is done or must stop.
//
// What comes next is a pure function of the session (next.go, a list of rules). The loop executes it (session.go). It
// asks the model (turn.go, and modelwait.go and modelend.go if that fails), compacts the session (compact.go), passes
// on messages of users and of the runner, has tool calls run (package toolcall), and asks users to raise limits that
// are used up (limits.go). Everything is recorded before it has an effect, and the sessions in memory are computed from
// the records (package state): a resumed session (resume.go) therefore equals the interrupted one.
//
//	          ┌────────────────────┐
//	resume → │        next        │ → end
//	          └┬────┬───┬────┬────┬┘
//	          ask tell  │ compact grant   each: intent → effect → result,
//	           ↑    │ execute │    │       in the journal
//	           └────┴────┴────┴────┘
//
// Sessions form a tree: a call of an agent runs this same loop in a session named after the call, which
// is resumed like any other. They share one meter, in which each has an account, and the requests to approvers and to
// the operator (package approval). Signals of approvers, operator and kubelet are one value (package signals). The
// status is a function of all these (progress.go).
//
// The layers of the session (middleware.Stack) surround each model call and each tool call. The innermost function is
// the engine's own, so layers cannot change what it records.
//
// The package depends on interfaces only: model.Model, tool.Tool, journal.Log, signals.Source, and the Reporter and the
// Sink defined here.
package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// An Outcome is how a session ended.
type Outcome struct {
	Reason task.Reason
	// Message describes for users what happened and what to do next.
	Message string
	// Text is the last text of the model, Output what the tool finish committed.
	Text   string
	Output json.RawMessage
	// Progress is the last progress, without a result.
	Progress task.Progress
	// Warning names answers of Models that may be incomplete, endpoints that no call could reach, and work that is not
	// published; empty: there is none.
	Warning string
	// Stack is the stack trace of a crash of the runner; empty: it did not crash.
	Stack string
}

// Run resumes the Run from its journal and works until it ends.
func Run(ctx context.Context, c Config) Outcome {
	r := newRun(c)
	return r.close(ctx, r.outcome(ctx))
}

// A run is the state that all sessions of a Run share.
type run struct {
	config Config
	root   *session
	status *statusBuilder
	// activity counts what works and waits. requests are the open requests to approvers and operator.
	activity *approval.Activity
	requests *approval.Requests
	clock    *meter.Clock
	// toolcalls is the configuration of all tool calls.
	toolcalls toolcall.Config
	// stopped is cancelled with signals.ErrStopped when the Run is to end.
	stopped context.Context
	// pendingReports counts the reports that are sent in the background; lifetime ends with the Run.
	pendingReports sync.WaitGroup
	lifetime       context.Context
	endLifetime    context.CancelFunc

	state *state.Store
	// requestWarnings are the warnings about requests to models.
	requestWarnings texts
	// restarts is how often the runner was restarted in the pod of this attempt.
	restarts int
	meter    *meter.Account // the Run's own; nil before the journal is read
}

func newRun(c Config) *run {
	r := &run{config: c, status: newStatusBuilder(c), clock: meter.NewClock(c.Now, c.Began)}
	r.state = state.NewStore(c.Journal, c.Actor.Agent.Name)
	if c.Digest == nil {
		r.config.Digest = digest.Call
	}
	r.lifetime, r.endLifetime = context.WithCancel(context.Background())
	if c.Signals == nil {
		r.config.Signals = &signals.Latest{}
	}
	r.activity = approval.NewActivity(r.clock, c.Now)
	r.requests = r.newRequests()
	r.toolcalls = toolcall.Config{
		State: r.state, Requests: r.requests, Activity: r.activity, Signals: r.config.Signals, Redact: r.config.Redact, Now: r.config.Now,
		CanAsk: r.config.CanAsk, CanStartRuns: r.config.CanStartRuns, Digest: r.config.Digest, Offload: r.config.Offload, LoadFile: r.config.LoadFile, Attach: r.config.Attach, Captured: r.config.Captured,
	}
	r.root = newSession(r, origin{}, c.Actor)
	r.root.prompt, r.root.deepest = c.Task.Prompt, c.Task.Limits.Depth
	return r
}

// newRequests returns the Requests of the Run, with the functions that they call.
func (r *run) newRequests() *approval.Requests {
	return approval.New(approval.Config{
		Signals: r.config.Signals, State: r.state, Activity: r.activity, Redact: r.config.Redact, Now: r.config.Now,
		CanAsk: r.config.CanAsk, CanStartRuns: r.config.CanStartRuns,
		MaxWait: time.Duration(max(r.config.Task.Limits.WaitSeconds, 0)) * time.Second,
		Durable: r.config.Durable, Hold: r.config.Hold, Busy: r.config.Busy,
		Reached: func() *meter.Limit { return r.meter.Reached() }, Grant: r.raiseLimits,
		Report: func() { r.config.Report.Report(r.takeProgress) }, ReportNow: r.reportNow, ReportedState: r.status.reportedState,
	})
}

// outcome works until the Run ends. A crash in between must not lose the progress: the next attempt continues from its
// effects and its meter.
func (r *run) outcome(ctx context.Context) (out Outcome) {
	defer toolcall.Recover(func(err error) { out = r.failed(err) })
	out, err := r.run(ctx)
	if err != nil {
		return r.failed(err)
	}
	return out
}

func (r *run) run(ctx context.Context) (Outcome, error) {
	if err := r.load(); err != nil {
		return Outcome{}, err
	}
	if r.config.Watch != nil {
		r.config.Watch(r.awaitLocks)
	}
	ctx, cancel := r.root.records.account.Deadline(ctx, r.root.actor.Place)
	defer cancel()
	var ended context.CancelFunc
	r.stopped, ended = signals.Context(r.lifetime, r.config.Signals, signals.Stopped, signals.ErrStopped)
	defer ended()
	if err := r.await(ctx, r.config.Report.Begin); err != nil {
		return Outcome{}, err
	}
	last := r.root.records.read().Last
	r.config.Events.Emit(r.root.records.scope, fmt.Sprintf("Attempt %d of Agent %s begins with %d messages", r.config.Task.Attempt, r.config.Actor.Agent.Name, last), events.RunStarted{
		Agent: r.config.Actor.Agent.Name, Model: r.config.Actor.Model.Name, Steps: last, Restarts: r.restarts, Limits: r.config.Task.Limits,
	})
	return r.root.work(ctx)
}

// awaitLocks returns when the locks of status, activity, meter and clock are free. The locks of state and requests are
// left out, because they are held while the journal is written.
func (r *run) awaitLocks() {
	r.status.reportedState()
	r.activity.Busy()
	r.meter.Read()
}

// signals returns the current signals.
func (r *run) signals() signals.Signals {
	now, _ := r.config.Signals.Current()
	return now
}

// await calls Begin or Commit of the Reporter, which wait for the API server and the operator. Nothing starts
// meanwhile, so an interruption ends the wait at once.
func (r *run) await(ctx context.Context, method func(context.Context, func() task.Progress) error) error {
	ctx, cancel := signals.Context(ctx, r.config.Signals, signals.Interrupted, signals.ErrInterrupted)
	defer cancel()
	if err := method(ctx, r.takeProgress); err != nil {
		return causeOf(ctx, err)
	}
	return nil
}

// awaitAccepted waits until the API server has accepted a request of this attempt. After that it returns at once.
func (r *run) awaitAccepted(ctx context.Context) error {
	if r.config.Report.Accepted() {
		return nil
	}
	return r.await(ctx, r.config.Report.Begin)
}

// reportNow reports the progress at once, in the background.
func (r *run) reportNow() {
	r.pendingReports.Go(func() { _ = r.config.Report.Commit(r.lifetime, r.takeProgress) })
}

// causeOf returns the real cause of an error: the cause of the context if that ended, otherwise the error itself.
func causeOf(ctx context.Context, err error) error {
	if _, ok := asEnd(err); ok || ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

func asEnd(err error) (*task.EndError, bool) {
	return errors.AsType[*task.EndError](err)
}

// failed returns the outcome of an error: with the reason that the error has, or RunnerFailed.
func (r *run) failed(err error) Outcome {
	var ended *task.EndError
	var full *journal.FullError
	out := Outcome{Reason: task.ReasonRunnerFailed, Message: r.config.Redact.String(err.Error())}
	if crashed, ok := errors.AsType[*toolcall.CrashError](err); ok {
		out.Stack = string(crashed.Stack)
	}
	switch {
	case errors.As(err, &full):
		out.Reason, out.Message = task.ReasonStorageFull, full.Error()+"; give the workspace more room"
	case errors.As(err, &ended):
		out.Reason, out.Message = ended.Reason, r.config.Redact.String(ended.Message)
	}
	return out
}

// close completes an outcome with what every outcome has.
func (r *run) close(ctx context.Context, out Outcome) Outcome {
	out = r.root.end(ctx, out)
	r.endLifetime()
	r.pendingReports.Wait()
	r.status.clearStep()
	out.Progress = r.progress()
	if out.Reason.Commits() {
		out.Progress.State, out.Progress.ModelWait = "", nil // it may have ended just when it was about to leave
		out.Warning = r.warning()
	}
	if out.Reason == task.ReasonModelUnavailable {
		out.Progress.ModelWait = r.root.model.gaveUp
	}
	return out
}

// maxWarnings is the maximum number of endpoints, or of Models, that a warning names.
const maxWarnings = 3

// warning returns the warning of the Run: which answers may be incomplete, and which endpoints could not be reached at
// the start or by any call. Models work around a failing tool, so a Run can succeed although its settings are wrong.
func (r *run) warning() string {
	var remotes []state.RemoteCalls
	var unclear []state.UnclearAnswers
	r.state.View(func(now *state.Run) { remotes, unclear = now.Remotes(), now.UnclearAnswers() })
	all := []string{r.requestWarnings.String(), unclearWarning(unclear), warningOf(r.config.Unavailable, remotes)}
	all = slices.DeleteFunc(all, func(s string) bool { return s == "" })
	return r.config.Redact.String(strings.Join(all, " "))
}

// texts are texts for a warning, each at most once. The zero value is empty. They are safe for concurrent use.
type texts struct {
	mu  sync.Mutex
	all []string
}

// add adds a text, and reports whether it is new and there is room for it.
func (t *texts) add(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.all) == maxWarnings || slices.Contains(t.all, text) {
		return false
	}
	t.all = append(t.all, text)
	return true
}

// String returns the texts as sentences.
func (t *texts) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all strings.Builder
	for _, text := range t.all {
		all.WriteString(strings.TrimSuffix(text, ".") + ". ")
	}
	return strings.TrimSpace(all.String())
}

// unclearWarning names the finish reasons that do not show whether an answer is complete.
func unclearWarning(all []state.UnclearAnswers) string {
	var warnings []string
	for _, u := range all {
		answers := "1 answer"
		if u.Count > 1 {
			answers = fmt.Sprintf("%d answers", u.Count)
		}
		warnings = append(warnings, fmt.Sprintf("%s of Model %s ended with the finish reason %q, which does not say that an answer is whole. Check the result.", answers, u.Model, u.Reason))
	}
	if more := len(warnings) - maxWarnings; more > 0 {
		warnings = append(warnings[:maxWarnings], fmt.Sprintf("The same holds for %d other reasons.", more))
	}
	return strings.Join(warnings, " ")
}

func warningOf(unavailable []journal.Remote, all []state.RemoteCalls) string {
	var warnings []string
	for _, u := range unavailable {
		warnings = append(warnings, fmt.Sprintf("The optional %s was not available: %s. Check %s.", u.Name, strings.TrimSuffix(u.Unreachable, "."), u.Field))
	}
	for _, c := range all {
		if c.Made == 0 || c.Failed < c.Made {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("Every call of %s failed (%d of %d): %s. Check %s.", c.Name, c.Failed, c.Made, strings.TrimSuffix(c.Unreachable, "."), c.Field))
	}
	if more := len(warnings) - maxWarnings; more > 0 {
		warnings = append(warnings[:maxWarnings], fmt.Sprintf("The same happened with %d more.", more))
	}
	return strings.Join(warnings, " ")
}

// The records of a session write its steps, its events and its usage.
type records struct {
	run     *run
	name    string // the call that opened the session; empty: the Run's own
	scope   step.Scope
	agent   string // the name of its agent
	account *meter.Account
}

// read returns the current session. The steps in it never change; later records only append to them or replace the
// list.
func (r *records) read() state.Session { return r.run.state.Session(r.name) }

// next returns the number that the next step of the session gets, and nextID is its id.
func (r *records) next() int64 { return r.read().Last + 1 }

func (r *records) nextID() string { return step.ID(r.name, r.next()) }

// Record appends to the journal and, once it is there, to the state.
func (r *records) Record(rec journal.Record) error { return r.record(rec, step.Usage{}) }

// RecordChild appends to the journal how a child Run ended, with what it used.
func (r *records) RecordChild(c journal.Child) error {
	return r.record(journal.Record{Kind: journal.KindChild, Child: &c}, c.Usage)
}

// record appends to the journal, together with the usage of a child Run. The account counts that usage after the
// journal has it, so that a resume neither loses nor doubles it, whatever is reported or recorded meanwhile.
func (r *records) record(rec journal.Record, used step.Usage) error {
	return r.run.state.Record(func() journal.Record {
		total := r.run.meter.Read()
		total = total.PlusChildRun(used)
		rec.Session, rec.Meter, rec.Accounts = r.name, &total, r.account.Chain()
		for i := range rec.Accounts {
			rec.Accounts[i] = rec.Accounts[i].PlusChildRun(used)
		}
		rec.At = r.run.config.Now().UTC()
		return rec
	}, func() {
		r.account.Add(func(m *step.Meter) { *m = m.PlusChildRun(used) })
	})
}

// recordStep numbers a step and records it.
func (r *records) recordStep(st step.Step, d *journal.Decision) error {
	st.Seq, st.Scope = r.next(), r.scope
	if err := r.Record(journal.Record{Kind: journal.KindStep, Step: &st, Decision: d}); err != nil {
		return fmt.Errorf("recording step %d: %w", st.Seq, err)
	}
	r.emitStep(st)
	return nil
}

// userStep returns a message to the model as a step.
func (r *records) userStep(text string, note step.Note) step.Step {
	return step.Step{
		Role: step.RoleUser, Note: note, At: r.run.config.Now().UTC(),
		Parts: []step.Part{{Kind: step.PartText, Text: r.run.config.Redact.String(text)}},
	}
}

// recordMessage records a message to the model.
func (r *records) recordMessage(text string, note step.Note) error {
	return r.recordStep(r.userStep(text, note), nil)
}

// Emit emits an event of the session.
func (r *records) Emit(message string, p events.Payload) {
	r.run.config.Events.Emit(r.scope, message, p)
}

// label returns a name as the status shows it. In a session below the Run's own, the name of the agent precedes it.
func (r *records) label(name string) string {
	if r.name == "" {
		return name
	}
	return task.Cut(r.agent+"/"+name, maxName)
}

// Account implements [toolcall.Session].
func (r *records) Account() *meter.Account { return r.account }

// emitStep emits the event of a recorded step.
func (r *records) emitStep(st step.Step) {
	r.Emit(fmt.Sprintf("%s: %s", st.Role, summarize(st)), events.StepFinished{Step: st})
}
