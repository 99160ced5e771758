package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

func TestAnErrorOfATool(t *testing.T) {
	down := errors.New("the database is down")
	cases := map[string]struct {
		err  error
		want task.Reason
		says string // the result of the call, or the message of the Run
	}{
		"is a result":                            {down, task.ReasonFinished, "Error: the database is down"},
		"is a result if a deadline of its own":   {fmt.Errorf("asking the database: %w", context.DeadlineExceeded), task.ReasonFinished, "Error: asking the database: context deadline exceeded"},
		"is a result if it carries a reason":     {task.End(task.ReasonMisconfigured, "no database"), task.ReasonFinished, "Error: Misconfigured: no database"},
		"is a crash if it is a nil pointer":      {(*middleware.VetoError)(nil), task.ReasonFinished, "Error: the tool crashed: runtime error: invalid memory address or nil pointer dereference"},
		"is a result if it has no text":          {errors.New(""), task.ReasonFinished, "Error: the tool failed without a message"},
		"ends the Run if it is fatal":            {tool.Fatal(down), task.ReasonRunnerFailed, "calling Look: the database is down"},
		"ends the Run if it wraps a fatal error": {fmt.Errorf("looking: %w", tool.Fatal(down)), task.ReasonRunnerFailed, "calling Look: looking: the database is down"},
		"ends the Run with the reason it carries": {
			tool.Fatal(task.End(task.ReasonMisconfigured, "no database")), task.ReasonMisconfigured, "no database",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			look := newTool("Look", tool.Once, func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, tc.err })
			s := newTestRun(enginetest.Toolbox{look}, calls("Look {}"), says("ok"))
			out := s.run(t)
			if out.Reason != tc.want {
				t.Fatalf("the Run ended %s (%s), want %s", out.Reason, out.Message, tc.want)
			}
			got := out.Message
			if tc.want == task.ReasonFinished {
				sound(t, s)
				got = s.steps(t)[2].Text()
			}
			if got != tc.says {
				t.Errorf("got %q, want %q", got, tc.says)
			}
		})
	}
}

// The call that fails fatally has ended, so users see its end, and the model of the next
// attempt reads why rather than that it was interrupted.
func TestTheNextAttemptReadsAFatalError(t *testing.T) {
	book := newTool("Book", tool.Once, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{}, tool.Fatal(errors.New("the database is down"))
	})
	s := newTestRun(enginetest.Toolbox{book}, calls("Book {}"))
	out := s.run(t)
	if out.Reason != task.ReasonRunnerFailed || out.Progress.Counts.ToolCalls != 1 || out.Progress.Counts.Errors != 1 {
		t.Errorf("ended %s with %+v", out.Reason, out.Progress.Counts)
	}
	if log := mustJSON(t, s.sink.all); !strings.Contains(log, `"isError":true,"summary":"Error: the database is down"`) {
		t.Errorf("the log does not say how the call ended: %s", log)
	}
	next := s.again(enginetest.Toolbox{book}, says("I go on without it."))
	if out := next.run(t); out.Reason != task.ReasonFinished {
		t.Errorf("the next attempt ended %s: %s", out.Reason, out.Message)
	}
	if got := next.steps(t)[2].Text(); got != "Error: the database is down" {
		t.Errorf("the model reads %q", got)
	}
}

// A layer sees what the model reads.
func TestALayerSeesAnErrorOfAToolAsAResult(t *testing.T) {
	look := newTool("Look", tool.Once, func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, errors.New("down") })
	s := newTestRun(enginetest.Toolbox{look}, calls("Look {}"), says("ok"))
	stack, err := middleware.Build(middleware.Layer{Name: "polite", Tool: func(next middleware.ToolFunc) middleware.ToolFunc {
		return func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			res, err := next(ctx, c)
			if err != nil || res.Error == nil {
				t.Errorf("the layer sees %+v, %v", res, err)
				return res, err
			}
			return tool.Fail("please wait: " + res.Error.Message), nil
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.Actor.Stack = stack
	s.run(t)
	if got := s.steps(t)[2].Text(); got != "Error: please wait: down" {
		t.Errorf("the model reads %q", got)
	}
}

// What a tool makes of an error of its session does not hide that the session failed.
func TestAnErrorOfTheSessionEndsTheRunWhateverTheToolMakesOfIt(t *testing.T) {
	hand := newTool("Hand", tool.Once, func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if _, err := c.Session.Delegate(ctx, tool.Delegation{Call: c.ID, Agent: "b", Prompt: "go"}); err != nil {
			return tool.Result{}, fmt.Errorf("handing over failed: %v", err) //nolint:errorlint // on purpose
		}
		return tool.Result{Text: "done"}, nil
	})
	s := newTestRun(enginetest.Toolbox{hand}, calls("Hand {}"), says("ok"))
	s.Task.Limits.Depth = 1
	s.Actors = func(Delegation) (*Actor, error) {
		child := s.Actor
		child.Agent.Name = "b"
		child.Model.Model = &fakeModel{turns: []turn{says("mine is done")}}
		return &child, nil
	}
	whole := *s
	whole.Journal = s.journal
	if out := whole.run(t); out.Reason != task.ReasonFinished {
		t.Fatalf("with room on the disk the Run ended %s: %s", out.Reason, out.Message)
	}
	records := 0
	for range s.journal.Read() {
		records++
	}
	for room := 4; room < records-2; room++ { // behind the intent of the call, before its result
		full := newTestRun(enginetest.Toolbox{hand}, calls("Hand {}"), says("ok"))
		full.Task.Limits.Depth, full.Actors = 1, s.Actors
		full.Journal = fullAfter{Log: full.journal, n: new(int), max: room}
		if out := full.run(t); out.Reason != task.ReasonStorageFull {
			t.Errorf("with room for %d records the Run ended %s: %s", room, out.Reason, out.Message)
		}
		for _, st := range full.steps(t) {
			if strings.Contains(st.Text(), "handing over failed") {
				t.Errorf("with room for %d records the model reads %q", room, st.Text())
			}
		}
	}
}
