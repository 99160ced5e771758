package engine

import (
	"context"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

func TestSigtermLetsRunningCallsEnd(t *testing.T) {
	var s *testRun
	s = newTestRun(enginetest.Toolbox{newTool("Bash", tool.Once, func(context.Context, tool.Call) (tool.Result, error) {
		s.sigterm()
		return tool.Result{Text: "done"}, nil
	})}, calls("Bash {}", "Bash {}"))
	s.Actor.Agent.ParallelTools = 1
	out := s.run(t)
	if out.Reason != task.ReasonInterrupted {
		t.Errorf("ended %s: %s", out.Reason, out.Message)
	}
	state := s.state(t)
	if len(state.Results) != 1 || len(state.Open()) != 1 || len(state.Intents) != 1 {
		t.Errorf("results %v, open %v, begun %v; want one of each", state.Results, state.Open(), state.Intents)
	}
	if state.Ended != "" {
		t.Errorf("an interruption is no end, but %q is recorded", state.Ended)
	}
}

func TestSigtermCutsWhatDoesNotEnd(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	var s *testRun
	s = newTestRun(enginetest.Toolbox{newTool("Bash", tool.Once, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		s.sigterm()
		cancel(signals.ErrInterrupted)
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	})}, calls("Bash {}"))
	if out := Run(ctx, s.Config); out.Reason != task.ReasonInterrupted {
		t.Errorf("ended %s: %s", out.Reason, out.Message)
	}
	if got, want := s.steps(t)[2].Text(), "Error: "+toolcall.ResultShutdown; got != want {
		t.Errorf("result %q, want %q", got, want)
	}
}

// An answer that nobody will use is not waited for.
func TestStopCutsAModelCall(t *testing.T) {
	s := newTestRun(nil)
	endless := says("never")
	endless.during = func(ctx context.Context) error {
		s.signals.stop()
		<-ctx.Done()
		return ctx.Err()
	}
	s.model.turns = []turn{endless}
	out := s.run(t)
	if out.Reason != task.ReasonStopped {
		t.Errorf("it ended %s: %s", out.Reason, out.Message)
	}
	if out.Progress.Usage.InputTokens == 0 {
		t.Error("the call that was cut cost nothing")
	}
}

func TestStopIsASafePoint(t *testing.T) {
	var s *testRun
	s = newTestRun(enginetest.Toolbox{newTool("Bash", tool.Once, func(context.Context, tool.Call) (tool.Result, error) {
		s.signals.stop()
		return tool.Result{Text: "done"}, nil
	})}, calls("Bash {}", "Bash {}"))
	s.Actor.Agent.ParallelTools = 1
	if out := s.run(t); out.Reason != task.ReasonStopped {
		t.Errorf("ended %s: %s", out.Reason, out.Message)
	}
	if got, want := s.transcript(t), "user: go\nassistant:  Bash{} Bash{}\ntool: done\ntool: Error: "+toolcall.ResultStopped; got != want {
		t.Errorf("the session is\n%s\nwant\n%s", got, want)
	}
}
