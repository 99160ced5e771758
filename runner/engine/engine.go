package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/journal"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/redact"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A Reporter tells the Run's status how far the work has come.
type Reporter interface {
	// Report takes over how far the work has come, to be told when it is worth it.
	// It does not block. Both ask now themselves, one at a time, so that what
	// parallel calls tell is never overtaken by what was true before it.
	Report(now func() task.Progress)
	// Commit returns once what now said, or something later, is accepted.
	Commit(ctx context.Context, now func() task.Progress) error
}

// A Sink is told what happens as it happens. It does not block.
type Sink interface {
	Emit(message string, p events.Payload)
}

// A Toolbox knows the tools of a session.
type Toolbox interface {
	// Specs is what the model is told, in an order that never changes.
	Specs() []step.Tool
	// Find returns the tool of that name.
	Find(name string) (tool.Tool, bool)
	// Read makes the arguments that a model wrote for a tool valid JSON: what it
	// meant, or else what it wrote as a JSON string.
	Read(name, raw string) json.RawMessage
	// Check holds arguments to the tool's schema; nil means they fit.
	Check(name string, args json.RawMessage) *tool.Error
}

// A Model is a language model and what people know it by.
type Model struct {
	model.Model
	Name   string
	Params model.Params
	// Credential says, for people, where its key comes from.
	Credential string
	// Price puts a price on usage that we estimated ourselves; nil: unknown.
	Price func(step.Usage) step.Usage
}

// Config is everything that a session needs.
type Config struct {
	Task  task.Task
	Agent task.Agent
	Model Model
	Tools Toolbox

	Journal journal.Log
	Events  Sink
	Report  Reporter
	Redact  *redact.Redactor

	// Interrupted is closed when nothing new may begin; what runs may go on until
	// the context ends.
	Interrupted <-chan struct{}
	// Stop says whether somebody asked the Run to end at its next safe point;
	// Stopping is closed when they do. Both may be nil: nobody can.
	Stop     func() bool
	Stopping <-chan struct{}
	// Recall is told of each call that succeeded in an earlier attempt, for tools
	// that remember; nil where none does.
	Recall func(name string, args json.RawMessage)
	// LowSpace says whether the disk was found full once.
	LowSpace func() bool
	Now      func() time.Time
	// Began is when this runner began to use up the Run's duration.
	Began time.Time
}

// An Outcome is how a session ended.
type Outcome struct {
	Reason task.Reason
	// Message says, for people, what happened and what to do next.
	Message string
	// Text is the last that the model said; Output what finish committed.
	Text   string
	Output json.RawMessage
	// Progress is the last state of the work, without a result.
	Progress task.Progress
	// Stack is where the runner crashed; empty when it did not.
	Stack string
}

// Run takes up the session where its journal stands and works until it ends.
func Run(ctx context.Context, c Config) Outcome {
	r := &run{Config: c, board: newBoard(c)}
	return r.close(r.outcome(ctx))
}

// outcome is how the work ended. A crash in its midst must not lose what is
// known of it: whoever comes after goes by its effects and its meter.
func (r *run) outcome(ctx context.Context) (out Outcome) {
	defer caught(func(err error) { out = r.failed(err) })
	out, err := r.run(ctx)
	if err != nil {
		return r.failed(err)
	}
	return out
}

// ErrInterrupted is the cause with which a context is cancelled when the pod is
// about to end.
var ErrInterrupted = task.End(task.ReasonInterrupted, "Interrupted by the shutdown of the pod")

// A run is one session at work.
type run struct {
	Config
	session session
	meter   *meter
	board   *board
	warned  bool // the model knows that the disk is full
	notes   []string
}

func (r *run) run(ctx context.Context) (Outcome, error) {
	if err := r.load(); err != nil {
		return Outcome{}, err
	}
	ctx, cancel := r.meter.deadline(ctx)
	defer cancel()
	// Until this is accepted, nothing tells that this attempt is the one that
	// counts: it must not have any effect.
	if err := r.commit(ctx); err != nil {
		return Outcome{}, err
	}
	if err := r.takeUp(); err != nil {
		return Outcome{}, err
	}
	return r.loop(ctx)
}

// loop is the whole of an agent: decide, do, decide again.
func (r *run) loop(ctx context.Context) (Outcome, error) {
	for {
		var err error
		switch act := next(r.view()); act.kind {
		case end:
			return act.outcome, nil
		case execute:
			err = r.execute(ctx, act.calls)
		case say:
			err = r.nudge(act.text)
		case ask:
			err = r.ask(ctx)
		}
		if err != nil {
			return Outcome{}, causeOf(ctx, err)
		}
	}
}

// view is all that next may know.
func (r *run) view() view {
	return view{
		State:       r.session.read(),
		schema:      len(r.Agent.OutputSchema) > 0,
		used:        r.meter.read(),
		limits:      r.Task.Limits,
		interrupted: r.interrupted(),
		stop:        r.Stop != nil && r.Stop(),
	}
}

func (r *run) interrupted() bool {
	select {
	case <-r.Interrupted:
		return true
	default:
		return false
	}
}

// commit returns once the operator knows how far the session has come, or
// cannot any more: nothing is begun while this waits, so an interruption ends
// the wait at once.
func (r *run) commit(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-r.Interrupted:
			cancel(ErrInterrupted)
		case <-ctx.Done():
		}
	}()
	if err := r.Report.Commit(ctx, r.progress); err != nil {
		return causeOf(ctx, err)
	}
	return nil
}

// causeOf is why a piece of work really failed: where the context ended, its
// cause, else the error itself.
func causeOf(ctx context.Context, err error) error {
	if _, ok := asEnd(err); ok || ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

// A crash is a panic as an error.
type crash struct {
	value any
	stack []byte
}

func (c *crash) Error() string { return fmt.Sprintf("the runner crashed: %v", c.value) }

// caught, deferred, tells of a panic as an error.
func caught(tell func(error)) {
	if p := recover(); p != nil {
		tell(&crash{value: p, stack: debug.Stack()})
	}
}

// failed is the outcome of an error: the reason it carries, or RunnerFailed.
func (r *run) failed(err error) Outcome {
	var ended *task.EndError
	var full *journal.FullError
	out := Outcome{Reason: task.ReasonRunnerFailed, Message: r.Redact.String(err.Error())}
	if crashed, ok := errors.AsType[*crash](err); ok {
		out.Stack = string(crashed.stack)
	}
	switch {
	case errors.As(err, &full):
		out.Reason, out.Message = task.ReasonStorageFull, full.Error()+"; give the workspace more room"
	case errors.As(err, &ended):
		out.Reason, out.Message = ended.Reason, r.Redact.String(ended.Message)
	}
	return out
}

// close completes an outcome with what is known at every end.
func (r *run) close(out Outcome) Outcome {
	s := r.session.read()
	if out.Text == "" {
		out.Text = lastText(s.Steps)
	}
	if r.meter != nil && out.Reason.Commits() {
		// Only the next attempt reads it; without it, that one begins with the same
		// question, which is no harm.
		_ = r.record(journal.Record{Kind: journal.KindMark, Mark: &journal.Mark{Type: journal.MarkEnded, Text: string(out.Reason)}})
	}
	r.board.rest()
	out.Progress = r.progress()
	return out
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
