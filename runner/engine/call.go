package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

const (
	// maxResult bounds what one call may add to the session, in bytes.
	maxResult = 256 << 10
	// Patience is how long a cancelled call may take to notice. After that its
	// result is written without it.
	Patience = 2 * time.Second
	// toolReject is the name of the tool that ends the Run without success.
	toolReject = "reject"
)

// perform brings one job to its result, or leaves it open when nothing new may
// begin. A failure of the runner itself cancels the turn.
func (r *run) perform(ctx context.Context, j *job, cancel context.CancelCauseFunc) {
	if r.interrupted() && !r.session.ended() || failure(ctx) != nil {
		return // no intent, no result: the next attempt runs it
	}
	began := r.Now()
	res := tool.Result{Error: r.refusal(ctx, j)}
	if res.Error == nil {
		var err error
		res, err = r.effect(ctx, j)
		if errors.Is(err, ErrInterrupted) {
			return // it did not begin; others of the turn may end in peace
		}
		if err != nil {
			cancel(err)
			return
		}
	}
	if err := r.settle(j, res, began); err != nil {
		cancel(err)
	}
}

// refusal says why a call is not begun; nil when it is.
func (r *run) refusal(ctx context.Context, j *job) *tool.Error {
	switch {
	case j.refusal != nil:
		return j.refusal
	case r.session.ended():
		return &tool.Error{Message: resultEnded}
	case r.Stop != nil && r.Stop():
		return &tool.Error{Message: resultStopped}
	case ctx.Err() != nil:
		return &tool.Error{Message: resultLimit}
	}
	return nil
}

// effect executes a call, behind the record that it is about to happen.
func (r *run) effect(ctx context.Context, j *job) (tool.Result, error) {
	if j.changes() {
		if err := r.beginEffects(ctx); err != nil {
			return tool.Result{}, err
		}
	}
	err := r.record(journal.Record{Kind: journal.KindIntent, Intent: &journal.Intent{
		CallID: j.call.ID, Name: j.call.Name, Args: j.call.Args, Effect: string(j.effect()),
	}})
	if err != nil {
		return tool.Result{}, fmt.Errorf("recording call %s: %w", j.call.ID, err)
	}
	r.started(j)
	return r.invoke(ctx, j)
}

// effect is the effect class of the job's tool. Ending the Run changes nothing
// but the Run.
func (j *job) effect() tool.Effect {
	switch {
	case j.spec.Ends:
		return tool.ReadOnly
	case j.spec.Effect == "":
		return tool.Once
	}
	return j.spec.Effect
}

func (j *job) changes() bool { return j.effect() != tool.ReadOnly }

// beginEffects makes sure that the operator knows, before anything happens,
// that this work can no longer simply be done again.
func (r *run) beginEffects(ctx context.Context) error {
	first, release := r.board.beginEffects()
	defer release()
	if !first {
		return nil
	}
	if err := r.commit(ctx); err != nil {
		r.board.noEffects()
		return fmt.Errorf("reporting that effects begin: %w", err)
	}
	return nil
}

var errTimeout = errors.New("the call took too long")

// An answer is what came of calling a tool.
type answer struct {
	result tool.Result
	err    error
}

// invoke calls the tool, for no longer than it may take. A tool that does not
// come back is left behind.
func (r *run) invoke(ctx context.Context, j *job) (tool.Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, j.timeout(), errTimeout)
	defer cancel()
	came := make(chan answer, 1)
	go func() { came <- r.guarded(ctx, j) }()
	var a answer
	select {
	case a = <-came:
	case <-ctx.Done():
		select {
		case a = <-came:
		case <-time.After(Patience):
			a.err = context.Cause(ctx)
		}
	}
	if ctx.Err() != nil && (a.err != nil || a.result.Error != nil) {
		return cut(context.Cause(ctx), j)
	}
	if a.err != nil {
		return tool.Result{}, fmt.Errorf("calling %s: %w", j.call.Name, a.err)
	}
	return a.result, nil
}

// guarded calls the tool; a panic in it is a result like any failure.
func (r *run) guarded(ctx context.Context, j *job) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			r.Events.Emit("", events.CallOutput{ID: j.call.ID, Text: fmt.Sprintf("panic: %v\n%s", p, debug.Stack())})
			a = answer{result: tool.Fail(fmt.Sprintf("the tool crashed: %v", p))}
		}
	}()
	res, err := j.tool.Call(ctx, tool.Call{
		ID: j.call.ID, Name: j.call.Name, Args: j.call.Args,
		Emit: func(text string) { r.Events.Emit("", events.CallOutput{ID: j.call.ID, Text: text}) },
	})
	return answer{result: res, err: err}
}

// cut is the result of a call that was cancelled while it ran. Where another
// attempt has taken over there is none to give.
func cut(cause error, j *job) (tool.Result, error) {
	if errors.Is(cause, errTimeout) {
		return tool.Fail(resultTimeout(j.timeout())), nil
	}
	end, ok := asEnd(cause)
	switch {
	case !ok || fatal(end):
		return tool.Result{}, cause
	case end.Reason == task.ReasonInterrupted:
		return tool.Fail(resultShutdown), nil
	default:
		return tool.Fail("Interrupted: " + end.Message), nil
	}
}

func asEnd(err error) (*task.EndError, bool) {
	return errors.AsType[*task.EndError](err)
}

// fatal says whether an end leaves nothing more to be recorded.
func fatal(end *task.EndError) bool {
	return end.Reason != task.ReasonInterrupted && end.Reason != task.ReasonDurationLimit
}

// settle records the result of a call.
func (r *run) settle(j *job, res tool.Result, began time.Time) error {
	ending := j.ending(&res)
	text := r.Redact.String(res.Render())
	if len(text) > maxResult {
		text = task.Cut(text, maxResult) + fmt.Sprintf(resultTooLarge, len(text))
	}
	if text == "" {
		text = resultEmpty
	}
	s := step.Step{
		Seq: j.seq, Role: step.RoleTool, CallID: j.call.ID, Name: j.call.Name, IsError: res.Error != nil,
		Parts: []step.Part{{Kind: step.PartText, Text: text}},
		At:    began.UTC(), Duration: r.Now().Sub(began),
	}
	r.meter.add(func(m *step.Meter) {
		m.ToolCalls++
		if s.IsError {
			m.Errors++
		}
	})
	if err := r.record(journal.Record{Kind: journal.KindResult, Step: &s, Ending: r.clean(ending)}); err != nil {
		return fmt.Errorf("recording the result of call %s: %w", j.call.ID, err)
	}
	r.finished(j, s, res)
	return nil
}

// ending is what a successful call of an ending tool commits. An output that
// does not fit is no success: only the model can make it smaller.
func (j *job) ending(res *tool.Result) *journal.Ending {
	if !j.spec.Ends || res.Error != nil {
		return nil
	}
	if len(res.Output) > task.MaxOutput {
		*res = tool.Fail(fmt.Sprintf(resultOutputLarge, len(res.Output), task.MaxOutput), "Write the bulk to a file and name the file in the output.")
		return nil
	}
	return &journal.Ending{Tool: j.call.Name, Text: res.Text, Output: res.Output}
}

// clean is an ending without secrets.
func (r *run) clean(e *journal.Ending) *journal.Ending {
	if e == nil {
		return nil
	}
	return &journal.Ending{Tool: e.Tool, Text: r.Redact.String(e.Text), Output: r.Redact.JSON(e.Output)}
}
