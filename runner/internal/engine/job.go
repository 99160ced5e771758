package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// maxResult bounds what one call may add to the session, in bytes.
const maxResult = 256 << 10

// toolReject is the name of the tool that ends the Run without success.
const toolReject = "reject"

// A job is one call of a turn on its way to a result.
type job struct {
	session *session
	call    step.Call
	seq     int64 // of its result, in call order, whenever it comes
	tool    tool.Tool
	spec    tool.Spec
	path    string // that its arguments name, cleaned; empty: none
	// args are its canonical arguments, which layers may change; nil: not yet made.
	args json.RawMessage
	// written is the digest of the arguments of which the tool made the canonical
	// ones; empty: the tool has no canonical form.
	written string
	// refusal says why the call is not executed; nil when it is.
	refusal *tool.Error
	// begun says that it was begun in an earlier attempt, may have changed
	// something, and was not begun again yet.
	begun bool
	// intent is how it was begun in an earlier attempt; nil: it was not, or was
	// begun again since.
	intent  *journal.Intent
	surplus bool // a limit of calls refuses it: it does not count
	taken   bool // it is reserved in the account
	done    chan struct{}
	fault   error // of the runner; no layer makes it go away
	// remote is where the call was made outside of the pod; nil: it was not.
	remote *journal.Remote

	mu     sync.Mutex
	inside int  // how often it is in another session, or asks a person
	over   bool // its result does not wait for it
}

// bring brings a job to its result, or leaves it open when nothing new may
// begin. A failure of the runner itself fails the turn.
func (j *job) bring(ctx context.Context, fail func(error)) {
	s := j.session
	s.activity.Enter()
	defer s.activity.Leave()
	if j.taken {
		defer s.account.Release()
	}
	if !s.ended() && approval.Leaves(s.safe(ctx)) || failure(ctx) != nil {
		return // no intent, no result: the next attempt runs it
	}
	began := s.Now()
	j.canonicalize(ctx)
	res := tool.Result{Error: j.refused(ctx)}
	if res.Error == nil {
		var err error
		res, err = j.make(ctx)
		if approval.Leaves(err) {
			return // it is left open; others of the turn may end in peace
		}
		if err != nil {
			fail(err)
			return
		}
	}
	if j.begun && res.Error != nil { // whatever forbids it now: it may have partly happened
		res.Error = s.cutShort(resultLost, j.call.ID).Error
	}
	if err := j.settle(res, began); err != nil {
		fail(err)
	}
}

// refused says why a call is not begun; nil when it is.
func (j *job) refused(ctx context.Context) *tool.Error {
	switch {
	case j.refusal != nil:
		return j.refusal
	case j.session.ended():
		return &tool.Error{Message: resultEnded}
	case j.session.stop():
		return &tool.Error{Message: resultStopped}
	case ctx.Err() != nil:
		return &tool.Error{Message: resultLimit}
	}
	return nil
}

// make makes the call through the layers around it. Their veto is a result.
func (j *job) make(ctx context.Context) (tool.Result, error) {
	s := j.session
	res, err := s.act(ctx, &tool.Call{
		ID: j.call.ID, Name: j.call.Name, Args: slices.Clone(j.args), Scope: s.scope, Session: j,
		Emit: j.show,
	})
	if j.fault != nil {
		return tool.Result{}, j.fault
	}
	if veto, ok := errors.AsType[*middleware.VetoError](err); ok {
		return tool.Result{Error: &tool.Error{Message: "Not executed: " + veto.Error()}, Hooks: res.Hooks}, nil
	}
	return res, err
}

// perform is innermost of the layers around a tool call.
func (s *session) perform(ctx context.Context, c *tool.Call) (tool.Result, error) {
	for _, j := range s.jobs {
		if j.call.ID == c.ID {
			return j.perform(ctx, c)
		}
	}
	return tool.Result{}, fmt.Errorf("a layer changed the id of a call to %q", c.ID)
}

// perform executes the call, if it may be made. What a layer made of its
// arguments is final, and must fit the tool.
func (j *job) perform(ctx context.Context, c *tool.Call) (tool.Result, error) {
	s := j.session
	if string(c.Args) != string(j.args) {
		args := s.Redact.JSON(c.Args)
		wrong := s.Tools.Check(j.call.Name, args)
		if wrong == nil {
			args, wrong = j.canonical(ctx, args)
		}
		if wrong != nil {
			return tool.Result{Error: wrong}, nil
		}
		c.Args = args
	}
	final := *c // what layers do to theirs from now on changes nothing
	final.Args = slices.Clone(c.Args)
	if refused, err := j.clear(ctx, &final); refused != nil || err != nil {
		return tool.Result{Error: refused}, err
	}
	return j.run(ctx, &final)
}

// run executes the call, behind the record that it is about to happen.
func (j *job) run(ctx context.Context, c *tool.Call) (tool.Result, error) {
	s := j.session
	err := s.Record(journal.Record{Kind: journal.KindIntent, Intent: &journal.Intent{
		CallID: j.call.ID, Name: j.call.Name, Args: c.Args, Written: j.written, Effect: string(j.effect(c.Args)),
	}})
	if err != nil {
		return tool.Result{}, j.fail(fmt.Errorf("recording call %s: %w", j.call.ID, err))
	}
	j.begun, j.intent = false, nil
	j.started(c.Args)
	res, err := j.invoke(ctx, c)
	if err != nil {
		return tool.Result{}, j.fail(err)
	}
	j.remote = j.reached(res)
	return res, nil
}

// reached says whether a call reached the endpoint of its tool; nil: there is none.
func (j *job) reached(res tool.Result) *journal.Remote {
	at := j.spec.Endpoint
	if at.Name == "" {
		return nil
	}
	remote := &journal.Remote{Name: at.Name, Field: at.Field}
	if res.Error != nil {
		remote.Unreachable = task.Cut(j.session.Redact.String(res.Error.Unreachable), task.MaxSummary)
	}
	return remote
}

// fail keeps what ends the turn.
func (j *job) fail(err error) error {
	j.fault = err
	return err
}

// effect is the effect class of a call with these arguments, which layers may
// have changed. Ending the session changes nothing but the session.
func (j *job) effect(args json.RawMessage) tool.Effect {
	if j.spec.Ends {
		return tool.ReadOnly
	}
	return tool.EffectOf(j.tool, args)
}

func (j *job) changes(args json.RawMessage) bool { return j.effect(args) != tool.ReadOnly }

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

// settle records the result of a call.
func (j *job) settle(res tool.Result, began time.Time) error {
	s := j.session
	if err := s.settleBelow(j.call.ID); err != nil {
		return err
	}
	ending := j.ending(&res)
	st := step.Step{
		Seq: j.seq, Role: step.RoleTool, CallID: j.call.ID, Name: j.call.Name, IsError: res.Error != nil, Pending: res.Pending,
		Parts: []step.Part{{Kind: step.PartText, Text: j.text(res)}}, Hooks: res.Hooks, Scope: s.scope,
		At: began.UTC(), Duration: s.Now().Sub(began),
	}
	s.account.Add(func(m *step.Meter) {
		if !j.surplus {
			m.ToolCalls++
		}
		if st.IsError {
			m.Errors++
		}
	})
	if err := s.Record(journal.Record{Kind: journal.KindResult, Step: &st, Ending: s.clean(ending), Remote: j.remote}); err != nil {
		return fmt.Errorf("recording the result of call %s: %w", j.call.ID, err)
	}
	j.finished(st, res)
	return nil
}

// text is what the model reads of a result: without secrets, of bounded size,
// never empty.
func (j *job) text(res tool.Result) string {
	text := j.session.Redact.String(res.Render())
	if j.session.Offload != nil {
		text = j.session.Offload(context.Background(), j.call, text) // also of a call that was cut
	}
	if len(text) > maxResult {
		text = task.Cut(text, maxResult) + fmt.Sprintf(resultTooLarge, len(text))
	}
	if text == "" {
		return resultEmpty
	}
	return text
}

// ending is what a successful call of an ending tool commits. An output that
// does not fit is no success: only the model can make it smaller.
func (j *job) ending(res *tool.Result) *journal.Ending {
	if !j.spec.Ends || res.Error != nil {
		return nil
	}
	if len(res.Output) > task.MaxOutput {
		hooks := res.Hooks
		*res = tool.Fail(fmt.Sprintf(resultOutputLarge, len(res.Output), task.MaxOutput), "Write the bulk to a file and name the file in the output.")
		res.Hooks = hooks
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
