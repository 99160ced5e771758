package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// raising is a testRun whose agent has child Runs work for it.
func raising(n *fakeOperator, turns ...turn) *testRun {
	s := newTestRun(enginetest.Toolbox{childTool(), askTool(), echo("Bash", tool.Once), echo("Read", tool.ReadOnly)}, turns...)
	s.Task.Limits.Tokens, s.Task.Limits.CostMicroUSD = 100_000, 1_000_000
	if n != nil {
		s.withOperator(n)
	}
	return s
}

const review = `child {"prompt": "Look",  "a": 1}`

func TestAChildRunIsAskedForAndItsEndRead(t *testing.T) {
	cases := map[string]struct {
		end  task.Child
		want string // what the model reads
	}{
		"a text":                        {task.Child{Reason: task.ReasonFinished, Text: "all is well"}, "all is well"},
		"an output":                     {task.Child{Reason: task.ReasonFinished, Text: "so", Output: `{"ok":true}`}, `{"ok":true}`},
		"nothing":                       {task.Child{Reason: task.ReasonFinished}, toolcall.ResultEmpty},
		"a rejection":                   {task.Child{Reason: task.ReasonRejected, Text: "not mine"}, "Error: The agent reviewer rejected the work: not mine"},
		"a rejection with a message":    {task.Child{Reason: task.ReasonRejected, Message: "it declined"}, "Error: The agent reviewer rejected the work: it declined"},
		"a failure":                     {task.Child{Reason: task.ReasonStepLimit, Message: "Used 3 of 3 steps"}, "Error: The agent reviewer ended without a result (StepLimit). Used 3 of 3 steps"},
		"a failure with a partial text": {task.Child{Reason: "DeadlineExceeded", Message: "late", Text: "half"}, "Error: The agent reviewer ended without a result (DeadlineExceeded). late\n- The last that it said: half"},
		"a failure with an output":      {task.Child{Reason: task.ReasonPublishFailed, Message: "no", Output: "{}"}, "Error: The agent reviewer ended without a result (PublishFailed). no"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newOperator()
				s := raising(n, calls(review), says("ok"))
				end := s.running(t.Context())
				synctest.Wait()
				time.Sleep(approval.SettleDelay)
				synctest.Wait()
				p := s.reporter.last()
				want := []task.Pending{{
					ID: "s2c1", Kind: task.PendingDelegation, Agent: "reviewer", Args: `{"a":1,"prompt":"Look"}`,
					Digest: digest.Call("reviewer", json.RawMessage(`{"a":1,"prompt":"Look"}`)), AskedAt: "2000-01-01T00:00:00Z",
				}}
				if diff := cmp.Diff(want, p.Pending); diff != "" || p.State != approval.StateChild || p.Effects != task.EffectsBegun {
					t.Errorf("state %q, effects %q, pending -want +got:\n%s", p.State, p.Effects, diff)
				}
				tc.end.Request, tc.end.Run, tc.end.Usage = "s2c1", "x-s2c1", priced(1000, 50)
				n.say(tc.end)
				out := end()
				if got := s.steps(t)[2].Text(); got != tc.want || out.Reason != task.ReasonFinished {
					t.Errorf("ended %s; the model reads %q, want %q", out.Reason, got, tc.want)
				}
				// Its tokens and its cost are the Run's, its steps and its duration are not.
				p = out.Progress
				if u := p.Usage; u.TotalTokens != 1030 || *u.CostMicroUSD != 250 || u.DurationSeconds > 1 || p.Counts.Steps != 2 || len(p.Pending) > 0 {
					t.Errorf("used %+v in %d steps; pending %v", u, p.Counts.Steps, p.Pending)
				}
				sound(t, s)
			})
		})
	}
}

func TestEventsOfAChildRun(t *testing.T) {
	cases := map[string]struct {
		end  task.Child
		want events.ChildFinished
		says string
	}{
		"one that ended":        {finished("s2c1", "ok"), events.ChildFinished{Session: "s2c1", Run: "x-s2c1", Agent: "reviewer", Reason: task.ReasonFinished, Usage: priced(1000, 50)}, "Child Run x-s2c1 of Agent reviewer ended: Finished"},
		"one that was not made": {task.Child{Request: "s2c1", Message: "too deep"}, events.ChildFinished{Session: "s2c1", Agent: "reviewer"}, "There is no child Run of Agent reviewer: too deep"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newOperator()
				s := raising(n, calls(review), says("ok"))
				n.say(tc.end)
				s.run(t)
				var told []events.Payload
				for _, e := range s.sink.all {
					switch e.(type) {
					case events.ChildStarted, events.ChildFinished, events.Pending, events.Decided:
						told = append(told, e)
					}
				}
				want := []events.Payload{events.ChildStarted{Session: "s2c1", Agent: "reviewer", Args: json.RawMessage(`{"a":1,"prompt":"Look"}`)}, tc.want}
				if diff := cmp.Diff(want, told); diff != "" {
					t.Errorf("told -want +got:\n%s", diff)
				}
				if got := s.sink.of(step.EventChildFinished); got[0] != tc.says {
					t.Errorf("told %q", got)
				}
			})
		})
	}
}

// A refusal is told to the model, and costs nothing.
func TestAChildRunThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newOperator()
		s := raising(n, calls(review), says("ok"))
		n.say(task.Child{Request: "s2c1", Message: "limits.depth is 3"})
		out := s.run(t)
		want := "Error: There is no Run of the agent reviewer: limits.depth is 3\n- " + toolcall.AdviceAlone
		if got := s.steps(t)[2].Text(); got != want || out.Progress.Usage.TotalTokens != 30 || out.Progress.Usage.CostMicroUSD == nil {
			t.Errorf("the model reads %q; used %+v", got, out.Progress.Usage)
		}
	})
}

// What cannot be asked for is told at once, and nobody is asked.
func TestWhatNoChildRunIsAskedFor(t *testing.T) {
	large := `{"prompt":"` + strings.Repeat("x", task.MaxDelegated) + `"}`
	cases := map[string]struct {
		children *fakeOperator
		args     string
		want     string
	}{
		"where there is no operator":  {nil, `{"prompt":"x"}`, "Error: " + fmt.Sprintf(toolcall.ResultNoOperator, "reviewer") + "\n- " + toolcall.AdviceAlone},
		"a large input":               {newOperator(), large, "Error: " + fmt.Sprintf(toolcall.ResultInputLarge, len(large), "reviewer", task.MaxDelegated) + "\n- " + toolcall.AdviceShorter},
		"what two may read otherwise": {newOperator(), `{"a":1,"a":2}`, `Error: Not executed: the arguments have "a" twice in one object`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := raising(tc.children, calls("child "+tc.args), says("ok"))
				out := s.run(t)
				if got := s.steps(t)[2].Text(); !strings.HasPrefix(got, tc.want) || out.Reason != task.ReasonFinished {
					t.Errorf("ended %s; the model reads %q, want %q", out.Reason, got, tc.want)
				}
				for _, p := range s.reporter.committed {
					if len(p.Pending) > 0 {
						t.Errorf("asked %v", p.Pending)
					}
				}
			})
		})
	}
}

// An input of just the bound is shown whole.
func TestTheLargestInputOfAChildRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		args := `{"prompt":"` + strings.Repeat("x", task.MaxDelegated-len(`{"prompt":""}`)) + `"}`
		n := newOperator()
		s := raising(n, calls("child "+args), says("ok"))
		end := s.running(t.Context())
		synctest.Wait()
		if p := s.reporter.last().Pending; len(p) != 1 || p[0].Args != args {
			t.Errorf("pending %v", p)
		}
		n.say(finished("s2c1", "ok"))
		end()
	})
}

// Only results of requested child Runs are applied, once, however often they are sent.
func TestResultsOfChildRunsAreAppliedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newOperator()
		for _, request := range []string{"s9c9", "s2c2", ""} {
			n.say(finished(request, "forged"))
		}
		s := raising(n, calls(review, `Ask {"q":"a"}`), calls("Read {}"), calls(review), says("ok"))
		people := n.fakeSignals
		s.withApprovers(people)
		end := s.running(t.Context())
		synctest.Wait()
		for range 3 {
			n.say(finished("s2c1", "first"))
			n.say(finished("s2c1", "second"))
			synctest.Wait()
		}
		people.say(answers("r", "s2c2", "main"))
		synctest.Wait()
		n.say(finished("s7c1", "third"))
		out := end()
		var read []string
		for _, st := range s.steps(t) {
			if st.Role == step.RoleTool {
				read = append(read, st.Text())
			}
		}
		if diff := cmp.Diff([]string{"first", "ann says main", "Read{}", "third"}, read); diff != "" {
			t.Errorf("read -want +got:\n%s", diff)
		}
		if out.Progress.Usage.CacheWriteTokens != 2000 {
			t.Errorf("charged %d for two", out.Progress.Usage.CacheWriteTokens)
		}
	})
}

// A Decision is no answer to what the operator is asked.
func TestNobodyDecidesOnAChildRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newOperator()
		people := n.fakeSignals
		s := raising(n, calls(review), says("ok"))
		s.withApprovers(people)
		end := s.running(t.Context())
		synctest.Wait()
		sum := s.reporter.last().Pending[0].Digest
		for _, d := range []task.Decision{
			approve("a", "s2c1", sum), approve("b", "", sum), deny("c", "s2c1", ""), answers("d", "s2c1", "x"), grant("s2c1", 3),
		} {
			people.say(d)
		}
		people.say(task.Decision{Name: "m", Request: "s2c1", Type: task.DecisionMessage, Value: "x"})
		synctest.Wait()
		p := s.reporter.last()
		want := []task.Decided{
			{Name: "a", Request: "s2c1", Refused: task.Cut(fmt.Sprintf(approval.RefusedKind, "s2c1", "Delegation", "Approve"), approval.MaxRefused)},
			{Name: "b", Refused: approval.RefusedNone},
			{Name: "c", Request: "s2c1", Refused: task.Cut(fmt.Sprintf(approval.RefusedKind, "s2c1", "Delegation", "Deny"), approval.MaxRefused)},
			{Name: "d", Request: "s2c1", Refused: task.Cut(fmt.Sprintf(approval.RefusedKind, "s2c1", "Delegation", "Answer"), approval.MaxRefused)},
			{Name: "r.s2c1", Request: "s2c1", Refused: task.Cut(fmt.Sprintf(approval.RefusedKind, "s2c1", "Delegation", "Grant"), approval.MaxRefused)},
		}
		if diff := cmp.Diff(want, p.Decided, typeless); diff != "" || len(p.Pending) != 1 {
			t.Errorf("pending %v; decided -want +got:\n%s", p.Pending, diff)
		}
		n.say(finished("s2c1", "well"))
		end()
		if got := s.transcript(t); !strings.Contains(got, "tool: well\nuser: x\nassistant: ok") {
			t.Errorf("the session is\n%s", got)
		}
	})
}

// It waits for as long as it takes, which uses up nothing.
func TestAChildRunMayTakeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newOperator()
		s := raising(n, calls(review), says("ok"))
		s.Task.Limits.WaitSeconds, s.Task.Limits.DurationSeconds = 10, 60
		end := s.running(t.Context())
		time.Sleep(30 * 24 * time.Hour)
		n.say(finished("s2c1", "well"))
		if out := end(); out.Reason != task.ReasonFinished || out.Progress.Usage.DurationSeconds != 0 {
			t.Errorf("ended %s after %d s: %s", out.Reason, out.Progress.Usage.DurationSeconds, out.Message)
		}
	})
}

// No secret leaves with what a child Run says.
func TestWhatAChildRunSaysIsRedacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newOperator()
		s := raising(n, calls(review), calls(review), calls(review), says("ok"))
		s.Redact = redacting()
		n.say(finished("s2c1", "the key is "+canary))
		n.say(task.Child{Request: "s4c1", Run: "x", Reason: task.ReasonFinished, Output: `{"key":"` + canary + `"}`})
		n.say(task.Child{Request: "s6c1", Run: "x", Reason: task.ReasonFinished, Output: `no JSON ` + canary})
		s.run(t)
		var all []any
		for r := range s.journal.Read() {
			all = append(all, r)
		}
		if text := mustJSON(t, append(all, s.sink.all, s.sink.messages)); strings.Contains(text, canary) || !strings.Contains(text, `{\"key\":\"‹secret:s/k›\"}`) {
			t.Errorf("it is told:\n%s", text)
		}
	})
}

// Layers may make other arguments of the same call each time: who takes it up goes
// on with what was asked first.
func TestACallThatIsTakenUpAsksTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newOperator()
		s := raising(n, calls(review))
		s.Durable, s.Actor.Stack = true, stamping()
		out := s.run(t)
		time.Sleep(time.Hour)
		next := s.again(s.Actor.Tools.(enginetest.Toolbox), says("ok"))
		next.withOperator(n)
		next.Durable, next.Actor.Stack = true, stamping()
		end := next.running(t.Context())
		synctest.Wait()
		if diff := cmp.Diff(out.Progress.Pending, next.reporter.last().Pending); diff != "" {
			t.Errorf("asked -first +then:\n%s", diff)
		}
		n.say(finished("s2c1", "well"))
		end()
		if got := next.steps(t)[2].Text(); got != "well" {
			t.Errorf("the model reads %q", got)
		}
	})
}

// stamping puts the time into the arguments of each call.
func stamping() *middleware.Stack {
	stack, _ := middleware.Build(middleware.Layer{Name: "stamp", Tool: func(next middleware.ToolFunc) middleware.ToolFunc {
		return func(ctx context.Context, call *tool.Call) (tool.Result, error) {
			call.Args = json.RawMessage(fmt.Sprintf(`{"at":%d}`, time.Now().Unix()))
			return next(ctx, call)
		}
	}})
	return stack
}
