package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/callreport"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// layered puts one layer around a testRun.
func layered(t *testing.T, s *testRun, l middleware.Layer) *testRun {
	t.Helper()
	l.Name = "layer"
	stack, err := middleware.Build(l)
	if err != nil {
		t.Fatal(err)
	}
	s.Actor.Stack = stack
	return s
}

var veto = &middleware.VetoError{By: "Hook guard", Reason: "it is Sunday"}

func TestAVeto(t *testing.T) {
	cases := map[string]struct {
		layer middleware.Layer
		want  task.Reason
		told  string
	}{
		"of a tool call is its result": {
			middleware.Layer{Tool: func(next middleware.ToolFunc) middleware.ToolFunc {
				return func(ctx context.Context, c *tool.Call) (tool.Result, error) {
					if strings.Contains(string(c.Args), "2") {
						return tool.Result{}, fmt.Errorf("asking: %w", veto)
					}
					return next(ctx, c)
				}
			}},
			task.ReasonFinished,
			"user: go\nassistant:  Bash{\"n\":1} Bash{\"n\":2}\ntool: Bash{\"n\":1}\ntool: Error: Not executed: Hook guard does not allow it: it is Sunday\nassistant: ok",
		},
		"of a model call ends the Run": {
			middleware.Layer{Model: func(middleware.ModelFunc) middleware.ModelFunc {
				return func(context.Context, *middleware.Turn) (model.Response, error) { return model.Response{}, veto }
			}},
			task.ReasonDenied, "user: go",
		},
		"of the start ends the Run": {
			middleware.Layer{Start: func(context.Context, *middleware.SessionStart) error { return veto }},
			task.ReasonDenied, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := layered(t, newTestRun(enginetest.Toolbox{echo("Bash", tool.Once)}, calls(`Bash {"n":1}`, `Bash {"n":2}`), says("ok")), tc.layer)
			out := s.run(t)
			if out.Reason != tc.want || tc.want == task.ReasonDenied && out.Message != veto.Error() {
				t.Errorf("ended %s: %s", out.Reason, out.Message)
			}
			if got := s.transcript(t); got != tc.told {
				t.Errorf("the session is\n%s\nwant\n%s", got, tc.told)
			}
			for rec := range s.journal.Read() {
				if rec.Intent != nil && strings.Contains(string(rec.Intent.Args), "2") {
					t.Error("what was forbidden is recorded as begun")
				}
			}
		})
	}
}

func TestALayerMayChangeWhatIsAboutToHappen(t *testing.T) {
	hooks := []step.Hook{{Name: "h", Did: step.HookChanged}}
	s := layered(t, newTestRun(enginetest.Toolbox{echo("Bash", tool.Once)}, calls(`Bash {"n":1}`), says("ok")), middleware.Layer{
		Start: func(ctx context.Context, o *middleware.SessionStart) error {
			o.Prompt += "!"
			callreport.AddHook(ctx, hooks[0])
			return nil
		},
		Model: func(next middleware.ModelFunc) middleware.ModelFunc {
			return func(ctx context.Context, turn *middleware.Turn) (model.Response, error) {
				if len(turn.Request.Steps) == 1 {
					if err := turn.Say("mind the gap", step.NoteHook); err != nil {
						return model.Response{}, err
					}
				}
				resp, err := next(ctx, turn)
				callreport.AddHook(ctx, hooks[0])
				return resp, err
			}
		},
		Tool: func(next middleware.ToolFunc) middleware.ToolFunc {
			return func(ctx context.Context, c *tool.Call) (tool.Result, error) {
				c.Args = json.RawMessage(`{"n":2}`)
				res, err := next(ctx, c)
				callreport.AddHook(ctx, hooks[0])
				return tool.Result{Text: res.Text + " seen"}, err
			}
		},
	})
	s.BuildPrompt = func(_ context.Context, prompt string, _ Allows) string { return prompt + "\n(read at the start)" }
	s.run(t)
	want := "user: go!\n(read at the start)\nuser: mind the gap\nassistant:  Bash{\"n\":1}\ntool: Bash{\"n\":2} seen\nassistant: ok"
	if got := s.transcript(t); got != want {
		t.Errorf("the session is\n%s\nwant\n%s", got, want)
	}
	if got := s.model.asked[0].Steps; len(got) != 2 || got[1].Text() != "mind the gap" {
		t.Errorf("the model was asked %v", got)
	}
	for i, st := range s.steps(t) {
		if i != 1 && cmp.Diff(hooks, st.Hooks) != "" {
			t.Errorf("step %d has the hooks %v", i+1, st.Hooks)
		}
	}
	for rec := range s.journal.Read() {
		if rec.Intent != nil && rec.Intent.CallID != "" && string(rec.Intent.Args) != `{"n":2}` {
			t.Errorf("recorded as begun: %s", rec.Intent.Args)
		}
	}
}

func TestChangedArgumentsMustFitTheTool(t *testing.T) {
	s := layered(t, newTestRun(enginetest.Toolbox{echo("Bash", tool.Once)}, calls(`Bash {}`), says("ok")), middleware.Layer{
		Tool: func(next middleware.ToolFunc) middleware.ToolFunc {
			return func(ctx context.Context, c *tool.Call) (tool.Result, error) {
				c.Args = json.RawMessage(`"rm"`)
				return next(ctx, c)
			}
		},
	})
	s.run(t)
	if got := s.steps(t)[2]; !got.IsError || !strings.Contains(got.Text(), "not valid JSON") {
		t.Errorf("the result is %q", got.Text())
	}
}

// A layer that asks again pays again.
func TestEveryCallThatALayerMakesCounts(t *testing.T) {
	s := layered(t, newTestRun(enginetest.Toolbox{echo("Bash", tool.Once)}, says("one"), says("two")), middleware.Layer{
		Model: func(next middleware.ModelFunc) middleware.ModelFunc {
			return func(ctx context.Context, turn *middleware.Turn) (model.Response, error) {
				if _, err := next(ctx, turn); err != nil {
					return model.Response{}, err
				}
				return next(ctx, turn)
			}
		},
	})
	out := s.run(t)
	if p := out.Progress; out.Text != "two" || p.Counts.ModelCalls != 2 || p.Counts.Steps != 1 || p.Usage.TotalTokens != 30 {
		t.Errorf("said %q: %+v %+v", out.Text, p.Counts, p.Usage)
	}
	if len(s.sink.of(step.EventReset)) != 1 {
		t.Error("nobody was told that the first answer is void")
	}
}

// No layer hides that the runner itself failed.
func TestALayerCannotSwallowAFailureOfTheJournal(t *testing.T) {
	swallow := middleware.Layer{
		Model: func(next middleware.ModelFunc) middleware.ModelFunc {
			return func(ctx context.Context, turn *middleware.Turn) (model.Response, error) {
				if resp, err := next(ctx, turn); err == nil {
					return resp, nil
				}
				return model.Response{Parts: []step.Part{{Kind: step.PartText, Text: "fine"}}, Finish: step.FinishStop}, nil
			}
		},
		Tool: func(next middleware.ToolFunc) middleware.ToolFunc {
			return func(ctx context.Context, c *tool.Call) (tool.Result, error) {
				res, _ := next(ctx, c)
				return res, nil
			}
		},
	}
	for at := 1; at < 5; at++ {
		s := layered(t, newTestRun(enginetest.Toolbox{echo("Bash", tool.Once)}, calls("Bash {}"), says("ok")), swallow)
		left := at
		s.Journal = crashingLog{Memory: s.journal, left: &left}
		if out := s.run(t); out.Reason != task.ReasonRunnerFailed || !strings.Contains(out.Message, errKilled.Error()) {
			t.Errorf("behind record %d: ended %s: %s", at, out.Reason, out.Message)
		}
	}
}

func TestLayersStartOnceAndStopAtEachEnd(t *testing.T) {
	started, stopped := 0, []string{}
	around := func(s *testRun) *testRun {
		return layered(t, s, middleware.Layer{
			Start: func(context.Context, *middleware.SessionStart) error { started++; return nil },
			Stop: func(_ context.Context, c middleware.SessionEnd) error {
				stopped = append(stopped, c.Reason+" "+c.Text)
				return errors.New("nobody is there")
			},
		})
	}
	first := around(newTestRun(nil, turn{text: "so far", finish: step.FinishLength}))
	first.sigterm()
	first.run(t)
	if started != 1 || len(stopped) != 0 {
		t.Errorf("an interruption: started %d times, stopped %v", started, stopped)
	}
	second := around(first.again(nil, says("well"), says("done")))
	second.run(t)
	if diff := cmp.Diff([]string{"Finished well"}, stopped); diff != "" || started != 1 {
		t.Errorf("started %d times, stopped -want +got:\n%s", started, diff)
	}
	if got := second.sink.of(step.EventStateChanged); len(got) != 1 || !strings.Contains(got[0], "nobody is there") {
		t.Errorf("told %v", got)
	}
}

func TestALayerThatDoesNotStopIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := layered(t, newTestRun(nil, says("done")), middleware.Layer{
			Stop: func(context.Context, middleware.SessionEnd) error { time.Sleep(time.Hour); return nil },
		})
		began := time.Now()
		if out := s.run(t); out.Reason != task.ReasonFinished || time.Since(began) != stopFor {
			t.Errorf("ended %s after %s", out.Reason, time.Since(began))
		}
		time.Sleep(time.Hour)
	})
}

func TestLargeResultsAreOffloadedOnce(t *testing.T) {
	var evicted []string
	s := newTestRun(enginetest.Toolbox{echo("Read", tool.ReadOnly)}, calls(`Read {"n":1}`), calls(`Read {"n":2}`), says("ok"))
	s.Offload = func(_ context.Context, c step.Call, text string) string {
		evicted = append(evicted, c.ID+" "+text)
		return "elsewhere " + c.ID
	}
	s.run(t)
	if diff := cmp.Diff([]string{`s2c1 Read{"n":1}`, `s4c1 Read{"n":2}`}, evicted); diff != "" {
		t.Errorf("evicted -want +got:\n%s", diff)
	}
	if got := s.model.asked[2].Steps[2].Text(); got != "elsewhere s2c1" {
		t.Errorf("the model reads %q", got)
	}
}

func TestAToolMayTakeAsLongAsItLikes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newTool("Slow", tool.Once, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			select {
			case <-ctx.Done():
				return tool.Result{}, ctx.Err()
			case <-time.After(48 * time.Hour):
				return tool.Result{Text: "at last"}, nil
			}
		})
		slow.Timeout = tool.Unbounded
		s := newTestRun(enginetest.Toolbox{slow}, calls("Slow {}"), says("ok"))
		s.run(t)
		if got := s.steps(t)[2].Text(); got != "at last" {
			t.Errorf("the result is %q", got)
		}
	})
}

// byVerb is the effect of a call that only reads unless its arguments say otherwise.
func byVerb(args json.RawMessage) tool.Effect {
	if strings.Contains(string(args), "POST") {
		return tool.Once
	}
	return tool.ReadOnly
}

func TestTheEffectOfACallIsThatOfItsFinalArguments(t *testing.T) {
	change := middleware.Layer{Name: "change", Tool: func(next middleware.ToolFunc) middleware.ToolFunc {
		return func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			c.Args = json.RawMessage(strings.ReplaceAll(string(c.Args), "PATCH", "POST"))
			return next(ctx, c)
		}
	}}
	cases := map[string]struct{ method, want string }{
		"what only reads is no effect":       {"GET", ""},
		"what changes something is one":      {"POST", task.EffectsBegun},
		"also where a layer makes it change": {"PATCH", task.EffectsBegun},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			send := echo("Send", tool.Once)
			send.Classify = byVerb
			s := newTestRun(enginetest.Toolbox{send}, calls(`Send {"method":"`+tc.method+`"}`), says("ok"))
			stack, err := middleware.Build(change)
			if err != nil {
				t.Fatal(err)
			}
			s.Actor.Stack = stack
			if out := s.run(t); out.Progress.Effects != tc.want {
				t.Errorf("ended %s: effects are %q, want %q", out.Reason, out.Progress.Effects, tc.want)
			}
		})
	}
}

func TestWhatAnAnswerUsedIsCountedOnceAlsoWhereALayerFailsBehindIt(t *testing.T) {
	broken := middleware.Layer{Name: "broken", Model: func(next middleware.ModelFunc) middleware.ModelFunc {
		return func(ctx context.Context, turn *middleware.Turn) (model.Response, error) {
			resp, err := next(ctx, turn)
			return resp, errors.Join(err, errors.New("it broke"))
		}
	}}
	s := newTestRun(nil, turn{text: "hello", finish: step.FinishStop, usage: step.Usage{InputTokens: 10, OutputTokens: 1}})
	stack, err := middleware.Build(broken)
	if err != nil {
		t.Fatal(err)
	}
	s.Actor.Stack = stack
	out := s.run(t)
	if out.Reason != task.ReasonRunnerFailed || !strings.Contains(out.Message, "layer") || !strings.Contains(out.Message, "it broke") {
		t.Errorf("ended %s: %s", out.Reason, out.Message)
	}
	folded, err := state.Replay(s.journal.Read())
	if err != nil {
		t.Fatal(err)
	}
	if asked := folded.Session("").Asked; asked != nil {
		t.Errorf("whoever takes it up is charged %d tokens once more", asked.InputTokens)
	}
	if got := folded.Meter.Usage.InputTokens; got != 10 {
		t.Errorf("%d tokens are counted", got)
	}
}
