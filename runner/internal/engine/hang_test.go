package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// What went wrong elsewhere: each of these has stopped an agent of somebody's.

// A call that hangs, and does not notice that it was cancelled, keeps no other
// of its turn from its result, nor the session from going on.
func TestOneCallOfATurnThatHangsHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deaf := newTool("Deaf", tool.Once, func(context.Context, tool.Call) (tool.Result, error) {
			time.Sleep(24 * time.Hour)
			return tool.Result{Text: "late"}, nil
		})
		deaf.Timeout = time.Minute
		s := newTestRun(enginetest.Toolbox{deaf, echo("Read", tool.ReadOnly)}, calls(`Read {"n":1}`, "Deaf {}", `Read {"n":2}`), says("ok"))
		began := time.Now()
		if out := s.run(t); out.Reason != task.ReasonFinished || out.Text != "ok" {
			t.Errorf("ended %s: %s", out.Reason, out.Message)
		}
		if took := time.Since(began); took > time.Minute+toolcall.CancelTimeout {
			t.Errorf("it took %s", took)
		}
		var got []string
		for _, st := range s.steps(t)[2:5] {
			got = append(got, st.Text())
		}
		want := []string{`Read{"n":1}`, "Error: " + toolcall.ResultTimeout(time.Minute), `Read{"n":2}`}
		if !slices.Equal(got, want) {
			t.Errorf("results %q, want %q", got, want)
		}
		time.Sleep(25 * time.Hour) // the late one changes nothing
		sound(t, s)
	})
}

// A branch whose session hangs keeps no other from its end either: the timeout
// of its tools ends it.
func TestOneAgentThatHangsHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := newTool("Hang", tool.Once, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		})
		s := delegating(fakeAgents{
			"b": fakeAgent("b", enginetest.Toolbox{hang}, calls("Hang {}"), says("b is done")),
			"c": fakeAgent("c", enginetest.Toolbox{echo("Read", tool.ReadOnly)}, calls("Read {}"), says("c is done")),
		}, calls(`agent {"agent":"b"}`, `agent {"agent":"c"}`), says("ok"))
		if out := s.run(t); out.Reason != task.ReasonFinished {
			t.Errorf("ended %s: %s", out.Reason, out.Message)
		}
		if told := s.transcript(t); !strings.Contains(told, "tool: b is done\ntool: c is done") {
			t.Errorf("the session is\n%s", told)
		}
		wholeTree(t, s)
	})
}

// A provider that asks for an hour does not hold a pod that is to go, nor a Run
// that is to stop.
func TestAWaitForAProviderEndsWithThePodAndTheRun(t *testing.T) {
	cases := map[string]struct {
		end  func(*testRun)
		want task.Reason
	}{
		"the pod is to go":   {func(s *testRun) { s.sigterm() }, task.ReasonInterrupted},
		"the Run is to stop": {func(s *testRun) { s.signals.stop() }, task.ReasonStopped},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestRun(nil, fails(&model.RateLimitedError{RetryAfter: time.Hour, Message: "slow down"}), says("never"))
				go func() {
					time.Sleep(time.Minute)
					tc.end(s)
				}()
				began := time.Now()
				out := s.run(t)
				if took := time.Since(began); out.Reason != tc.want || took != time.Minute {
					t.Errorf("ended %s after %s: %s", out.Reason, took, out.Message)
				}
			})
		})
	}
}

// A stutterer is a model whose every answer breaks off twice behind all of its
// input, which is paid each time. In between it reads.
type stutterer struct {
	turns int
	input int64
}

func (m stutterer) Stream(_ context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	said := 0
	for _, s := range req.Steps {
		if s.Role == step.RoleAssistant {
			said++
		}
	}
	return func(yield func(model.Delta, error) bool) {
		if req.Steps[len(req.Steps)-1].Note != "" || asksForSummary(req) {
			yield(model.Delta{}, errors.New("somebody wants a summary"))
			return
		}
		for i := range int64(2) {
			if !yield(model.Delta{Text: "I th"}, nil) || !yield(model.Delta{Reset: true, Usage: &step.Usage{InputTokens: (i + 1) * m.input, OutputTokens: i + 1}}, nil) {
				return
			}
		}
		last := model.Delta{Finish: step.FinishStop, Usage: &step.Usage{InputTokens: 3 * m.input, OutputTokens: 12}}
		if said < m.turns {
			last.Finish = step.FinishCalls
			last.Call = &model.CallDelta{Name: "Read", Args: fmt.Sprintf(`{"n":%d}`, said)}
		} else {
			last.Text = "done"
		}
		yield(last, nil)
	}
}

// What several tries cost is all paid, but only the last of them is in the
// window: a session is not compacted because a stream was cut.
func TestTriesThatBrokeOffDoNotFillTheWindow(t *testing.T) {
	s := newTestRun(enginetest.Toolbox{echo("Read", tool.ReadOnly)})
	s.Actor.Model = Model{Model: stutterer{turns: 8, input: 9_000}, Name: "m", Window: 20_000, MaxOutput: 1000}
	out := s.run(t)
	if out.Reason != task.ReasonFinished || out.Text != "done" {
		t.Errorf("ended %s: %s %s", out.Reason, out.Message, out.Text)
	}
	if got := len(s.sink.of(step.EventCompacted)); got != 0 {
		t.Errorf("compacted %d times", got)
	}
	if got, want := out.Progress.Usage.InputTokens, int64(9*3*9_000); got != want {
		t.Errorf("paid for %d tokens of input, want %d", got, want)
	}
}

// A glutton is a model that reads too much at once, and then goes on if that
// fits its window.
type glutton struct{ window int64 }

func (g glutton) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	t := calls(slices.Repeat([]string{"Read {}"}, 10)...)
	switch size := model.EstimateInput(req); {
	case size > g.window:
		t = fails(&model.ContextTooLongError{Message: fmt.Sprintf("%d tokens", size), Window: g.window})
	case len(req.Steps) > 1:
		t = says("done")
	}
	t.usage = step.Usage{InputTokens: model.EstimateInput(req)}
	return (&fakeModel{turns: []turn{t}}).Stream(ctx, req)
}

// The calls of one turn can fill a window, each within its bound: the first of
// their results are taken out of sight again, and the Run goes on.
func TestOneTurnThatFillsTheWindowDoesNotEndTheRun(t *testing.T) {
	s := newTestRun(enginetest.Toolbox{newTool("Read", tool.ReadOnly, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Text: strings.Repeat("word", 16_000)}, nil
	})})
	s.Actor.Model = Model{Model: glutton{window: 128_000}, Name: "m", Window: 128_000, MaxOutput: 8_000}
	if out := s.run(t); out.Reason != task.ReasonFinished || out.Text != "done" {
		t.Errorf("ended %s: %s", out.Reason, out.Message)
	}
	sound(t, s)
}
