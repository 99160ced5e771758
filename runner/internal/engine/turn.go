package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/callreport"
	"github.com/deckhand-dev/deckhand/runner/internal/compaction"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/internal/textcall"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A modelTurn is one turn of the model under way.
type modelTurn struct {
	id          string    // that of the answer, unless a layer adds messages before it
	started     bool      // the event of the id is emitted
	tries       int       // how often the model was asked; layers may ask again
	fault       error     // of the runner; no layer makes it go away
	answered    bool      // the model has answered, whatever layers make of it
	asked       string    // the Model that is asked, or answers
	announced   bool      // the end of the outage before the answer was told
	shown       bool      // users have seen a part of the answer
	requestSize int64     // the estimated size of the request
	sentAt      time.Time // when it, or the last request for the rest of its answer, was sent
	requests    int64     // those of the turn that are counted
	failedAt    time.Time // when the first of them failed; zero: none did
}

// A modelCaller asks the model of one session, and compacts the session for it.
type modelCaller struct {
	run     *run
	actor   *Actor
	records *records
	system  string
	tools   []step.Tool
	// answer makes the model call through the layers.
	answer middleware.ModelFunc

	turn modelTurn
	// routes choose actor.Model.
	routes turnRouter
	// wait is the current wait for the model, or nil. gaveUp is a wait that took too long.
	wait   *approval.ModelWait
	gaveUp *task.ModelWait
	// compactions counts compactions in a row that freed too little by our own count. compactedSince counts those since
	// the last answer. overflow is why the provider refused the last request.
	compactions    int
	compactedSince int
	overflow       *model.ContextTooLongError
	// refused is set by a refusal that may mean that the request is too long: it is the error that ends the session if
	// the shorter request is refused, too. Nil: there was none since the last answer.
	refused      *task.EndError
	refusedSizes map[string]refusedSize // by the name of the Model
}

func newModelCaller(r *run, a *Actor, rec *records) *modelCaller {
	c := &modelCaller{run: r, actor: a, records: rec, system: r.config.Redact.String(a.Agent.Instructions)}
	c.routes = turnRouter{own: a.Model, routes: a.Routes}
	if a.Tools != nil {
		c.tools = slices.Clip(a.Tools.Specs())
	}
	c.answer = a.Stack.Model(c.callBehindLayers)
	return c
}

// ask asks the model and records its answer.
func (c *modelCaller) ask(ctx context.Context) error {
	began := c.run.config.Now()
	c.beginTurn(&c.actor.Model)
	untilStop, cancel := c.untilStopped(ctx)
	defer cancel()
	t := &middleware.Turn{Scope: c.records.scope, Request: c.request()}
	t.Say = func(text string, note step.Note) error { return c.addMessage(t, text, note) }
	t.Charge = c.charge
	answering, report := callreport.New(untilStop)
	resp, err := c.answer(answering, t)
	if c.turn.fault != nil {
		return c.turn.fault
	}
	if err != nil {
		return errors.Join(c.recordDiscarded(), c.handleError(untilStop, &c.actor.Model, err))
	}
	return c.recordAnswer(began, resp, report.Hooks())
}

// recordDiscarded records the usage of an answer that a layer discarded. Otherwise a resume would charge the answer
// again, by estimate.
func (c *modelCaller) recordDiscarded() error {
	if !c.turn.answered {
		return nil
	}
	return c.records.Record(journal.Record{Kind: journal.KindMeter})
}

// addMessage adds a message of a layer before the model's answer.
func (c *modelCaller) addMessage(t *middleware.Turn, text string, note step.Note) error {
	if err := c.records.recordMessage(text, note); err != nil {
		return c.turn.fail(err)
	}
	steps := c.records.read().Steps
	t.Request.Steps = append(t.Request.Steps, steps[len(steps)-1])
	return nil
}

// charge counts a model call that a layer made itself.
func (c *modelCaller) charge(used step.Usage) {
	c.records.account.Add(func(m *step.Meter) {
		m.ModelCalls++
		m.Usage = m.Usage.Plus(used)
	})
}

// beginTurn shows in the status which model is about to be asked, and returns its name.
func (c *modelCaller) beginTurn(m *Model) string {
	name, _, _ := m.next()
	c.turn = modelTurn{id: c.records.nextID()}
	c.run.beginStep(c.turn.id, task.KindModel, c.records.label(name))
	return name
}

// startTurn emits, once, that a model is asked for the next step of the session. If a layer has added messages since
// beginTurn, the step has another id.
func (c *modelCaller) startTurn(name string) {
	if id := c.records.nextID(); c.turn.id != id {
		c.turn.id, c.turn.started = id, false
		c.run.beginStep(id, task.KindModel, c.records.label(name))
	}
	if c.turn.started {
		return
	}
	c.turn.started = true
	c.records.Emit(fmt.Sprintf("Step %s: asking %s", c.turn.id, name), events.StepStarted{ID: c.turn.id, Step: c.turn.seq(), Kind: task.KindModel, Name: name})
}

// seq returns the number of the answer among the steps of its session.
func (t *modelTurn) seq() int64 { return step.SeqOf(t.id) }

// untilStopped returns a context that ends when the Run is asked to stop.
func (c *modelCaller) untilStopped(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	off := context.AfterFunc(c.run.stopped, func() {
		if cause := context.Cause(c.run.stopped); errors.Is(cause, signals.ErrStopped) { // not the end of the Run itself
			cancel(cause)
		}
	})
	return ctx, func() { off(); cancel(nil) }
}

// request returns everything that the model sees of the session. Between compactions it only grows at its end, so that
// providers can cache it.
func (c *modelCaller) request() *model.Request {
	return c.requestOf(c.records.read().Steps)
}

func (c *modelCaller) requestOf(steps []step.Step) *model.Request {
	key := c.run.config.Task.Run.UID
	if c.records.name != "" {
		key += "/" + c.records.name
	}
	return &model.Request{System: c.system, Steps: slices.Clip(steps), Tools: c.tools, Params: c.actor.Model.Params, CacheKey: key, Files: c.run.config.Files}
}

// callBehindLayers is the innermost function of the layers around a model call.
func (c *modelCaller) callBehindLayers(ctx context.Context, t *middleware.Turn) (model.Response, error) {
	return c.callModel(ctx, &c.actor.Model, t.Request)
}

// callModel records that a model is about to be asked, asks it, and counts the usage of every try.
func (c *modelCaller) callModel(ctx context.Context, m *Model, req *model.Request) (model.Response, error) {
	if c.turn.tries++; c.turn.tries > 1 {
		c.records.Emit("The model is asked again", events.Reset{Step: c.turn.seq()})
	}
	name, _, _ := m.next()
	c.startTurn(name)
	c.turn.requestSize, c.turn.sentAt = compaction.Used(req), c.run.config.Now()
	c.turn.asked = name
	c.beginRequest(name)
	c.records.account.Add(func(used *step.Meter) { used.ModelCalls++ })
	err := c.records.Record(journal.Record{Kind: journal.KindIntent, Intent: &journal.Intent{Name: name, InputTokens: c.turn.requestSize}})
	if err != nil {
		return model.Response{}, c.turn.fail(fmt.Errorf("recording a model call: %w", err))
	}
	resp, err := model.Collect(c.continued(name, m.Stream(ctx, req)), c.show)
	resp.Model = cmp.Or(resp.Model, name)
	if err != nil {
		return resp, c.recordFailure(ctx, m, req, &resp, err)
	}
	if resp.Usage == (step.Usage{}) {
		resp.Usage = c.estimate(m, req, resp)
	}
	c.records.account.Add(func(used *step.Meter) { used.Usage = used.Usage.Plus(resp.Usage) })
	c.turn.answered = true
	c.warnOfReason(resp)
	return resp, nil
}

// warnOfReason warns about an answer that is used although its finish reason does not show that it is complete.
func (c *modelCaller) warnOfReason(resp model.Response) {
	if resp.UnclearReason == "" {
		return
	}
	text := c.run.config.Redact.String(unclearWarning([]state.UnclearAnswers{{Model: resp.Model, Reason: resp.UnclearReason, Count: 1}}))
	c.records.Emit(text, events.Warning{Text: text, Step: c.turn.seq()})
}

// warn warns about what a request lacks, once in an attempt. The result of the Run has the warning too.
func (c *modelCaller) warn(text string) {
	text = c.run.config.Redact.String(text)
	if c.run.requestWarnings.add(text) {
		c.records.Emit(text, events.Warning{Text: text, Step: c.turn.seq()})
	}
}

// fail keeps an error of the runner itself.
func (t *modelTurn) fail(err error) error {
	t.fault = err
	return err
}

// show passes on an answer while it arrives.
func (c *modelCaller) show(d model.Delta) {
	if d.Reset {
		c.turn.requests++
		c.turn.failedAt = cmp.Or(c.turn.failedAt, c.run.config.Now().UTC())
		c.records.account.Add(func(m *step.Meter) { m.ModelCalls++; m.Errors++ })
		c.records.Emit("The model is asked again: "+task.Cut(d.Because, task.MaxSummary), events.Reset{Step: c.turn.seq()})
	}
	c.turn.shown = !d.Reset && c.turn.shown || d.Thinking != "" || d.Text != ""
	c.turn.asked = cmp.Or(d.Model, c.turn.asked)
	if d.Thinking != "" || d.Text != "" || d.Call != nil {
		c.answering()
	}
	if d.Warning != "" {
		c.warn(d.Warning)
	}
	if d.Repair != nil {
		c.records.account.Add(func(m *step.Meter) { m.ModelCalls++; m.Repairs++ })
		c.records.Emit("The request is sent with a change: "+task.Cut(d.Repair.Change+". "+d.Because, task.MaxSummary),
			events.Repaired{Step: c.turn.seq(), Kind: string(d.Repair.Kind), Change: d.Repair.Change})
	}
	if d.Thinking != "" {
		c.records.Emit("", events.ThinkingDelta{Step: c.turn.seq(), Text: d.Thinking})
	}
	if d.Text != "" {
		c.records.Emit("", events.TextDelta{Step: c.turn.seq(), Text: d.Text})
	}
}

// recordAnswer records a complete answer, with the actions of hooks.
func (c *modelCaller) recordAnswer(began time.Time, resp model.Response, hooks []step.Hook) error {
	st := c.assistant(resp)
	st.Hooks, st.At, st.Duration = hooks, began.UTC(), c.run.config.Now().Sub(began)
	c.answered(st.Model)
	id := c.records.nextID()
	c.records.account.Add(func(m *step.Meter) { m.Steps++ })
	if err := c.records.recordStep(st, nil); err != nil {
		return err
	}
	if c.turn.requestSize <= c.trigger() {
		c.compactions = 0
	}
	c.overflow, c.refused, c.compactedSince = nil, nil, 0
	c.run.status.setModel(st.Model, c.run.config.Now())
	c.run.status.addRecent(task.Recent{
		ID: id, Kind: task.KindModel, Name: c.records.label(st.Model), Summary: summarize(st), DurationMs: st.Duration.Milliseconds(),
	})
	c.run.warnOfLimits()
	return nil
}

// assistant returns an answer as a step: without secrets, with our own ids for its calls, and with valid arguments.
func (c *modelCaller) assistant(resp model.Response) step.Step {
	st := step.Step{Role: step.RoleAssistant, Finish: resp.Finish, UnclearReason: c.run.config.Redact.String(resp.UnclearReason), Model: cmp.Or(resp.Model, c.actor.Model.Name), Usage: resp.Usage}
	for _, p := range resp.Parts {
		p.Text = c.run.config.Redact.String(p.Text)
		p.Provider = c.run.config.Redact.JSON(p.Provider)
		st.Parts = append(st.Parts, p)
	}
	for i, call := range resp.Calls {
		name := c.run.config.Redact.String(call.Name)
		args := c.run.config.Redact.JSON(c.actor.Tools.Read(name, call.Args))
		st.Calls = append(st.Calls, step.Call{ID: step.CallID(c.records.name, c.records.next(), i+1), Name: name, Args: args})
	}
	return st
}

// errUnfinished ends an answer that needs another request, for its rest or as a retry, when that is not allowed: a
// limit is reached, the Run is paused, or the runner leaves. next then decides the next action.
var errUnfinished = errors.New("the answer is not whole, and was not asked for again")

// continued passes on the answer of a model. If it pauses, the request for the rest is counted and limited like any
// other. A repeated request must stay within the limits, too, together with the usage of the earlier tries.
func (c *modelCaller) continued(name string, stream iter.Seq2[model.Delta, error]) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for d, err := range stream {
			if !yield(d, err) {
				return
			}
			if err != nil {
				continue
			}
			if err := c.mayGoOn(name, d); err != nil {
				yield(model.Delta{}, err)
				return
			}
		}
	}
}

// mayGoOn returns an error if a delta needs another request and a limit or a pause does not allow that.
func (c *modelCaller) mayGoOn(name string, d model.Delta) error {
	switch {
	case d.Reset && c.records.account.SpentWith(usageOf(d)):
		return errUnfinished
	case d.Continued:
		return c.checkContinuation(name, d)
	}
	return nil
}

// usageOf returns the usage of an answer so far.
func usageOf(d model.Delta) step.Usage {
	if d.Usage == nil {
		return step.Usage{}
	}
	return *d.Usage
}

// checkContinuation records that the rest of an answer is about to be requested, or returns why it is not. The record
// has the usage so far, which is charged after a crash.
func (c *modelCaller) checkContinuation(name string, d model.Delta) error {
	used := usageOf(d)
	if now := c.run.signals(); c.run.requests.Leaving() != nil || now.Paused || now.Stopped || c.records.account.ReachedWith(used) != nil {
		return errUnfinished
	}
	c.turn.requests++
	c.records.account.Add(func(m *step.Meter) { m.ModelCalls++ })
	c.turn.sentAt = c.run.config.Now()
	intent := journal.Intent{Name: name, InputTokens: c.turn.requestSize + used.InputTokens + used.OutputTokens, Before: d.Usage}
	if err := c.records.Record(journal.Record{Kind: journal.KindIntent, Intent: &intent}); err != nil {
		return c.turn.fail(fmt.Errorf("recording a model call: %w", err))
	}
	return nil
}

// textCall returns the name of the tool that an answer calls in its text, or an empty name. A text is no call if it is
// valid output, if the model was given it, or if the prompt asked for it. Directly after a notice that nothing was
// executed, more forms count as calls.
func (c *modelCaller) textCall(answer step.Step) string {
	if answer.Role != step.RoleAssistant || len(answer.Calls) > 0 {
		return ""
	}
	steps := c.records.read().Steps
	find := textcall.Find
	if strings.HasPrefix(lastNudge(steps[:max(len(steps)-1, 0)]), nudgeTextCall) {
		find = textcall.FindAgain
	}
	call, found := find(answer.Text(), c.tools)
	if !found || c.isOutput(answer.Text()) {
		return ""
	}
	given, said := []string{c.system}, []string(nil)
	for _, st := range steps {
		switch {
		case st.Role == step.RoleUser && (st.Note == "" || st.Note == step.NoteMessage):
			said = append(said, st.Text())
		case st.Role == step.RoleTool:
			given = append(given, st.Text())
		}
	}
	if call.IsQuotation(append(given, said...)) || call.IsRequested(said, c.system) {
		return ""
	}
	return call.Name
}

// isOutput reports whether a text is valid output: then the model is asked to call finish with it.
func (c *modelCaller) isOutput(text string) bool {
	if len(c.actor.Agent.OutputSchema) == 0 || !json.Valid([]byte(text)) {
		return false
	}
	tools := c.actor.Tools.Specs()
	i := slices.IndexFunc(tools, func(t step.Tool) bool { return task.EndsRun(t.Name) && !task.IsReject(t.Name) })
	return i >= 0 && c.actor.Tools.Check(tools[i].Name, json.RawMessage(text)) == nil
}

// Messages of the loop to the model. The texts are part of sessions: changing a word makes resumed sessions differ from
// what was recorded.
const (
	nudgeFinish = "You have not ended the work yet. Call the tool Finish with your result as its arguments; a text alone does not end it."
	nudgeSilent = "Your answer was empty. Go on with the work, or say what the result is."
	nudgeCut    = "Your answer was cut at the limit of its length and is not used. Give a shorter one, whole."
	// nudgeTextCall begins the notice about a call that was written as text, nudgeCallTool completes it.
	nudgeTextCall = "Nothing was executed: your answer has a tool call as text."
	nudgeCallTool = " Call %s as a tool to execute it. If the text is your result, call the tool Finish with it."

	nudgeStuck = "You are repeating yourself: %s. Change your approach: review what you know, try another way, or say what blocks you."

	noteLowSpace  = "The disk is full. Delete what is not needed; when it is full again, the work ends."
	noteAttempt   = "The attempt before this one ended: %s. This is attempt %d; the work continues from here. Look at what is already done before you do it again."
	noteLost      = "The processes that ran beside this session have ended: the runner or its pod was replaced.\n%s\n%s Start again what you still need."
	noteFiles     = "Files are as they were left."
	noteLostFiles = "What was written below %s before was lost. Other files are as they were left."
	noteContinued = "This continues the work of the Run %s, which ended with %s. %s Processes that it started have ended, and approvals that it was given are asked for again."
	noteForked    = "This continues the work of the Run %s from its step %d on. What it did after that is not in this session. %s"
	noteCopied    = "Files may have changed since: look before you rely on what you read here."
	noteForkCopy  = "But files are as it left them at its end, or have changed since: look at them before you rely on what you read here."
	noteNoFiles   = "Its files are not here: %s has the files that the work begins with. Look before you rely on what you read here."
	noteFresh     = "The attempt before this one ended: %s. This is attempt %d and begins from the start."

	resultDeep     = "Agents may call each other only %d deep (limits.depth). Do this part of the work yourself."
	resultNoAgents = "This agent may call no other."
)

// Messages for users about ends.
const (
	endStuck       = "The agent repeated itself, also after a notice: %s (%s, %d times). Change its instructions or tools, or use another Model"
	endContextFull = "%s; %d compactions in a row were not enough: give the Run less to read, shorten the instructions and tools, or use a Model with a larger window"
	endOverflow    = "%s; nothing more can be hidden: give the Run less to read, shorten the instructions and tools, or use a Model with a larger window"
)

// noSummary replaces hidden steps if there is no better summary.
const noSummary = "(The model gave no summary of the steps before this one. Look at what is there before you go on.)"

// The subjects of notices to the model, for users.
const (
	invalidFinish   = "it answered in text and did not call Finish; simplify output.schema, or use a stronger Model"
	invalidSilent   = "its answer was empty; change the instructions or the prompt, or use a stronger Model"
	invalidCut      = "its answer was cut at the limit of its length; raise %s"
	invalidTextCall = "it wrote a call of %s as text, also after a notice that nothing was executed; have the model server parse tool calls (vLLM: --enable-auto-tool-choice and the --tool-call-parser of the model), or use a Model that supports tools"
)

// States of the Run in events, in addition to those of its status.
const (
	stateWorking = "Working" // it goes on
	stateClosing = "Closing" // something failed that only stands around the work
)
