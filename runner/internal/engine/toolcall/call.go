package toolcall

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/callreport"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// MaxResult bounds what one call may add to the session, in bytes.
const MaxResult = 256 << 10

// A toolCall is one call of a turn, until it has a result.
type toolCall struct {
	runner  *Runner
	session *toolSession // what the tool may do beside its work
	call    step.Call
	seq     int64     // of its result, in call order, whenever it comes
	tool    tool.Tool // with its concurrency
	path    string    // that its arguments name, cleaned; empty: none
	// args are its canonical arguments, which layers may change; nil: not yet computed.
	args json.RawMessage
	// written is the digest of the model's arguments, if the tool made canonical ones from them; empty: the tool has no
	// canonical form.
	written string
	// refusal is why the call is not executed; nil: it is.
	refusal *tool.Error
	// begun is true if an earlier attempt began the call, which may have had effects, and this one has not begun it
	// again.
	begun bool
	// intent is the record with which an earlier attempt began the call; nil: none did, or this one has begun it again.
	intent *journal.Intent
	// began is when the work on the call began: hooks and approval are before it.
	began     time.Time
	overLimit bool // a limit of calls refuses it: it does not count
	reserved  bool // it is reserved in the account
	done      chan struct{}
	fault     error // of the runner or a fatal one of the tool; no layer makes it go away
	// fatal is the result of a call whose error ends the attempt. It is recorded so that the next attempt does not take
	// the call for an interrupted one. Nil: there is no such error.
	fatal *tool.Result
	// made are the arguments with which the tool was called, after layers changed them;
	// nil: it was not called.
	made json.RawMessage
	// denied is what denied the call; nil: nothing did.
	denied *Denial
	// remote is the endpoint outside of the pod where the call was made; nil: there is none.
	remote *journal.Remote
	// report has what layers and the runner's own tools report about the call; nil: the layers have not run.
	report *callreport.Report
}

// run executes the call and records its result, or leaves it open if nothing new may begin. A failure of the runner
// itself fails the turn.
func (t *toolCall) run(ctx context.Context, fail func(error)) {
	r := t.runner
	r.config.Activity.Enter()
	defer r.config.Activity.Leave()
	if t.reserved {
		defer r.records.Account().Release()
	}
	if !r.ended() && approval.Leaves(r.session.SafePoint(ctx)) || Failure(ctx) != nil {
		return // no intent, no result: the next attempt runs it
	}
	t.began = r.config.Now()
	t.canonicalize(ctx)
	res, settles := t.execute(ctx, fail)
	if !settles {
		return
	}
	if t.begun && res.Error != nil { // whatever forbids it now: it may have partly happened
		res.Error = r.interruptedResult(ResultLost, t.call.ID).Error
	}
	if err := t.settle(res); err != nil {
		fail(err)
	}
}

// execute returns the result of the call, or false if the call stays open: for the next attempt,
// or because the turn fails.
func (t *toolCall) execute(ctx context.Context, fail func(error)) (res tool.Result, settles bool) {
	if refusal := t.refused(ctx); refusal != nil {
		return tool.Result{Error: refusal}, true
	}
	if endsBeforeLimit(ctx) {
		return res, false // the context ended since run asked
	}
	res, err := t.runThroughLayers(ctx)
	if err != nil && !approval.Leaves(err) { // otherwise the other calls of the turn may end
		fail(t.settleFatal(err))
	}
	return res, err == nil
}

// endsBeforeLimit reports whether the attempt ends for a reason other than limits.duration, so that the next attempt
// can make the call.
func endsBeforeLimit(ctx context.Context) bool {
	if ctx.Err() == nil {
		return false
	}
	end, ok := errors.AsType[*task.EndError](context.Cause(ctx))
	return !ok || end.Reason != task.ReasonDurationLimit
}

// settleFatal records the result of a call whose error is fatal, and returns the error that ends the attempt.
func (t *toolCall) settleFatal(err error) error {
	if t.fatal == nil {
		return err
	}
	return cmp.Or(t.settle(*t.fatal), err)
}

// refused returns why a call is not begun, or nil.
func (t *toolCall) refused(ctx context.Context) *tool.Error {
	switch {
	case t.refusal != nil:
		return t.refusal
	case t.runner.ended():
		return &tool.Error{Message: ResultEnded}
	case t.runner.stopped():
		return &tool.Error{Message: ResultStopped}
	case ctx.Err() != nil && !endsBeforeLimit(ctx):
		return &tool.Error{Message: ResultLimit}
	}
	return t.runner.unread(t)
}

// runThroughLayers runs the call through the layers around it. A veto of a layer becomes the result.
func (t *toolCall) runThroughLayers(ctx context.Context) (tool.Result, error) {
	r := t.runner
	ctx, t.report = callreport.New(ctx)
	res, err := r.act(ctx, &tool.Call{
		ID: t.call.ID, Name: t.call.Name, Args: slices.Clone(t.args), Scope: r.options.Scope, Session: t.session,
		Emit: t.emitOutput,
	})
	if t.fault != nil {
		return tool.Result{}, t.fault
	}
	if veto, ok := errors.AsType[*middleware.VetoError](err); ok {
		t.denied = &Denial{By: task.DeniedByHook, Rule: veto.By}
		return tool.Result{Error: &tool.Error{Message: "Not executed: " + veto.Error()}}, nil
	}
	return res, err
}

// runBehindLayers is the innermost function of the layers around a tool call.
func (r *Runner) runBehindLayers(ctx context.Context, c *tool.Call) (tool.Result, error) {
	for _, t := range r.calls {
		if t.call.ID == c.ID {
			return t.runFinal(ctx, c)
		}
	}
	return tool.Result{}, fmt.Errorf("a layer changed the id of a call to %q", c.ID)
}

// runFinal runs the call if it is allowed. The arguments that layers pass on are final, and must match the schema of
// the tool.
func (t *toolCall) runFinal(ctx context.Context, c *tool.Call) (tool.Result, error) {
	r := t.runner
	if string(c.Args) != string(t.args) {
		args := r.config.Redact.JSON(c.Args)
		wrong := r.check(t.call.Name, args)
		if wrong == nil {
			args, wrong = t.canonical(ctx, args)
		}
		if wrong != nil {
			return tool.Result{Error: wrong}, nil
		}
		c.Args = args
	}
	final := *c // what layers do to theirs from now on changes nothing
	final.Args = slices.Clone(c.Args)
	refused, err := t.preflight(ctx, &final)
	if t.began = r.config.Now(); refused != nil || err != nil {
		return tool.Result{Error: refused}, err
	}
	return t.runTool(ctx, &final)
}

// preflight returns nil when the call may be made, or why it may not. After every wait it compares the digest again
// with the allowed one.
func (t *toolCall) preflight(ctx context.Context, c *tool.Call) (*tool.Error, error) {
	for {
		digest, refused, err := t.permit(ctx, c)
		if refused != nil || err != nil {
			return refused, err
		}
		if refused, err := t.recheck(ctx, c); refused != nil || err != nil {
			return refused, err
		}
		if digest == "" || t.digest(c) == digest {
			return nil, nil
		}
	}
}

// recheck runs between the permission, which can take days, and the call. It checks that the Run is not paused and has
// not ended, and has the operator record that effects begin.
func (t *toolCall) recheck(ctx context.Context, c *tool.Call) (*tool.Error, error) {
	if err := t.runner.finalSafePoint(ctx); err != nil {
		return nil, t.fail(err)
	}
	if refused := t.refused(ctx); refused != nil || !t.changes(c.Args) {
		return refused, nil
	}
	if err := t.runner.session.BeginEffects(ctx); err != nil {
		return nil, t.fail(err)
	}
	return nil, nil
}

// finalSafePoint is the last safe point before a call.
func (r *Runner) finalSafePoint(ctx context.Context) error {
	if err := r.session.SafePoint(ctx); approval.Leaves(err) {
		return err
	}
	if cause := context.Cause(ctx); approval.Leaves(cause) {
		return cause
	}
	return Failure(ctx)
}

// fail keeps the error that ends the turn.
func (t *toolCall) fail(err error) error {
	t.fault = err
	return err
}

// ends reports whether a successful result of this call ends the session.
func (t *toolCall) ends() bool { return t.tool.Internal.Facts().Ends }

// effect returns the effect class of a call with these arguments, which layers may have changed. A call that only ends
// the session changes nothing else.
func (t *toolCall) effect(args json.RawMessage) tool.Effect {
	if t.ends() {
		return tool.ReadOnly
	}
	return t.tool.EffectOf(args)
}

func (t *toolCall) changes(args json.RawMessage) bool { return t.effect(args) != tool.ReadOnly }

// settle records the result of a call.
func (t *toolCall) settle(res tool.Result) error {
	r := t.runner
	if err := r.settleBelow(t.call.ID); err != nil {
		return err
	}
	ending := t.ending(&res)
	st := step.Step{
		Seq: t.seq, Role: step.RoleTool, CallID: t.call.ID, Name: t.call.Name, IsError: res.Error != nil, Failed: res.Failed, Pending: res.Pending,
		Parts: t.content(res), Hooks: t.report.Hooks(), Scope: r.options.Scope,
		At: t.began.UTC(), Duration: r.config.Now().Sub(t.began),
	}
	r.records.Account().Add(func(m *step.Meter) { t.count(m, st) })
	if err := r.records.Record(journal.Record{Kind: journal.KindResult, Step: &st, Ending: r.redactEnding(ending), Remote: t.remote}); err != nil {
		return fmt.Errorf("recording the result of call %s: %w", t.call.ID, err)
	}
	t.finished(st, res)
	return nil
}

// content returns the parts of a result that the model is shown: its text, with a line for each file that is not shown,
// and its files, including files that users attached to answers.
func (t *toolCall) content(res tool.Result) []step.Part {
	files, lines := t.runner.config.show(res.Files)
	answered, missing := t.session.shownFiles()
	text := strings.Join(append(append([]string{res.Render()}, lines...), missing...), "\n")
	return append(append([]step.Part{{Kind: step.PartText, Text: t.text(strings.TrimPrefix(text, "\n"))}}, files...), answered...)
}

// text returns the text of a result for the model: without secrets, of bounded size, never empty.
func (t *toolCall) text(rendered string) string {
	text := t.runner.config.Redact.String(rendered)
	if t.runner.config.Offload != nil {
		text = t.runner.config.Offload(context.Background(), t.call, text) // also of a call that was cut
	}
	if len(text) > MaxResult {
		text = task.Cut(text, MaxResult) + fmt.Sprintf(ResultTooLarge, len(text))
	}
	if text == "" {
		return ResultEmpty
	}
	return text
}

// ending returns what a successful call of an ending tool commits. An output that is too large is an error, because
// only the model can shorten it.
func (t *toolCall) ending(res *tool.Result) *journal.Ending {
	if !t.ends() || res.Error != nil {
		return nil
	}
	if len(res.Output) > task.MaxOutput {
		*res = tool.Fail(fmt.Sprintf(ResultOutputLarge, len(res.Output), task.MaxOutput), "Write the bulk to a file and name the file in the output.")
		return nil
	}
	return &journal.Ending{Tool: t.call.Name, Text: res.Text, Output: res.Output}
}

// redactEnding returns an ending without secrets.
func (r *Runner) redactEnding(e *journal.Ending) *journal.Ending {
	if e == nil {
		return nil
	}
	return &journal.Ending{Tool: e.Tool, Text: r.config.Redact.String(e.Text), Output: r.config.Redact.JSON(e.Output)}
}

// A Denial describes what denied a call.
type Denial struct {
	// By is one of the task.DeniedBy constants.
	By string
	// Rule is the rule of a policy, or the hook; empty: it has no name.
	Rule string
}

// deny notes what denies the call, and returns its result.
func (t *toolCall) deny(by, rule string, result *tool.Error) *tool.Error {
	t.denied = &Denial{By: by, Rule: rule}
	return result
}

// denial returns what denied a call that has a result, or nil. A call that was executed was not denied, even if a hook
// rejected its result.
func (t *toolCall) denial(res tool.Result) *Denial {
	if t.made != nil || res.Error == nil {
		return nil
	}
	if t.denied != nil {
		return t.denied
	}
	for _, h := range t.report.Hooks() {
		if h.Did == step.HookVetoed {
			return &Denial{By: task.DeniedByHook, Rule: h.Name}
		}
	}
	return nil
}

// finished shows the result of a call in status and log.
func (t *toolCall) finished(st step.Step, res tool.Result) {
	res.Summary = t.runner.config.Redact.String(res.Summary) // whole: a piece of a secret would not be known
	if denied := t.denial(res); denied != nil {
		t.runner.session.ShowDenied(t.call, *denied)
	}
	t.runner.session.ShowFinished(t.call, st, summarize(t, st, res))
}

// count counts a call that has a result. A call beyond the limit counts as an error, but not as a call.
func (t *toolCall) count(m *step.Meter, st step.Step) {
	if st.IsError {
		m.Errors++
	}
	if t.overLimit {
		return
	}
	m.ToolCalls++
	if st.IsError {
		m.ToolErrors++
	}
}

// unread refuses a call that would end the session with success although another call of its turn failed: the model
// wrote its result without knowing of the failure. A call of reject is allowed.
func (r *Runner) unread(t *toolCall) *tool.Error {
	if !t.ends() || task.IsReject(t.call.Name) {
		return nil
	}
	failed := r.failedCalls()
	if len(failed) == 0 {
		return nil
	}
	return &tool.Error{Message: fmt.Sprintf(ResultUnread, task.Cut(strings.Join(failed, ", "), task.MaxSummary))}
}

// failedCalls returns the names of the calls of the current turn that failed or were refused, each once. It reads the
// journal, because an earlier attempt may have made them.
func (r *Runner) failedCalls() []string {
	st := r.read()
	var names []string
	for _, c := range st.Steps[len(st.Steps)-1].Calls {
		res, known := st.Results[c.ID]
		if known && (res.IsError || res.Failed) && !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}
