package engine

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// endless is a model that calls one tool so many times.
type endless struct{ left *int }

func (e endless) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		usage := step.Usage{InputTokens: 10, OutputTokens: 5}
		if *e.left == 0 {
			yield(model.Delta{Text: "done", Usage: &usage, Finish: step.FinishStop}, nil)
			return
		}
		*e.left--
		yield(model.Delta{Call: &model.CallDelta{Name: "Read", Args: fmt.Sprintf(`{"path":"a%d"}`, *e.left)}, Usage: &usage, Finish: step.FinishCalls}, nil)
	}
}

// deaf is a Reporter that asks what there is to report and forgets it.
type deaf struct{}

func (deaf) Accepted() bool { return true }

func (deaf) Report(now func() task.Progress) { now() }

func (deaf) Begin(_ context.Context, now func() task.Progress) error {
	now()
	return nil
}

func (deaf) Commit(_ context.Context, now func() task.Progress) error {
	now()
	return nil
}

// discardSink is a Sink that discards all events.
type discardSink struct{}

func (discardSink) Emit(step.Scope, string, events.Payload) {}

// BenchmarkStep is one turn of the loop: a model that answers at once, one call
// of a tool that does nothing, a journal in memory.
func BenchmarkStep(b *testing.B) {
	const turns = 1000
	tools := enginetest.Toolbox{newTool("Read", tool.ReadOnly, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Text: "ok"}, nil
	})}
	b.ReportAllocs()
	for b.Loop() {
		left := turns
		s := newTestRun(tools)
		s.Actor.Model.Model = endless{left: &left}
		s.Report, s.Events = deaf{}, discardSink{}
		s.Task.Limits.Steps = turns + 2
		if out := Run(b.Context(), s.Config); out.Reason != task.ReasonFinished {
			b.Fatalf("ended %s: %s", out.Reason, out.Message)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/turns/float64(time.Microsecond), "µs/step")
}
