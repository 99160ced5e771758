package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// delegating is a testRun whose agent may call others, two deep.
func delegating(c fakeAgents, turns ...turn) *testRun {
	s := newTestRun(enginetest.Toolbox{agentTool(), echo("Read", tool.ReadOnly), echo("Bash", tool.Once)}, turns...)
	s.Actors = c.actors
	s.Task.Limits.Depth = 2
	return s
}

func TestWhatAnAgentSaysIsTheResultOfItsCall(t *testing.T) {
	reads := enginetest.Toolbox{echo("Read", tool.ReadOnly), ending("Finish"), ending("Reject")}
	strict := fakeAgent("b", reads, calls(`Finish {"ok":true}`))
	strict.Agent.OutputSchema = []byte(`{"type":"object"}`)
	bounded := fakeAgent("b", reads, turn{text: "so far so good", calls: []model.Call{{Name: "Read", Args: "{}"}}, finish: step.FinishCalls}, calls("Read {}"))
	bounded.Agent.Limits.Steps = 1
	cases := map[string]struct {
		actor *Actor
		want  string
	}{
		"its last text":     {fakeAgent("b", reads, calls("Read {}"), says("well read")), "well read"},
		"its output":        {strict, `{"ok":true}`},
		"why it rejects":    {fakeAgent("b", reads, calls("Reject {}")), "Error: The agent b rejected the work: ended"},
		"its own limit":     {bounded, "Error: The agent b ended without a result (StepLimit). Used 1 of 1 steps; raise limits.steps of the Run if it sets one, otherwise of the Agent, or give the Run less to do\n- The last that it said: so far so good"},
		"its model's fault": {fakeAgent("b", reads, fails(&model.UnavailableError{Status: 503, Message: "busy", Final: true})), "Error: The agent b ended without a result (ModelUnavailable). Model m-b: the model endpoint is unavailable (HTTP 503): busy; if this does not pass, check the Model's endpoint"},
		"its long window":   {fakeAgent("b", reads, fails(&model.ContextTooLongError{Message: "too long"})), "Error: The agent b ended without a result (ContextTooLong). " + fmt.Sprintf(endOverflow, &model.ContextTooLongError{Message: "too long"})},
		"nobody":            {nil, `Error: there is no agent "b"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, closed := fakeAgents{}, 0
			if tc.actor != nil {
				tc.actor.Close = func() { closed++ }
				c["b"] = tc.actor
			}
			s := delegating(c, calls(`agent {"agent":"b","prompt":"look"}`), says("ok"))
			if out := s.run(t); out.Reason != task.ReasonFinished {
				t.Fatalf("ended %s: %s", out.Reason, out.Message)
			}
			if got := s.steps(t)[2].Text(); got != tc.want {
				t.Errorf("the result is\n%s\nwant\n%s", got, tc.want)
			}
			if closed != len(c) {
				t.Errorf("the agent is closed %d times, want once", closed)
			}
			wholeTree(t, s)
		})
	}
}

// wholeTree asserts of every session in the journal that each of its calls has
// exactly one result.
func wholeTree(t *testing.T, s *testRun) {
	t.Helper()
	due, results := map[string]bool{}, map[string]int{}
	for r := range s.journal.Read() {
		if r.Step == nil {
			continue
		}
		for _, c := range r.Step.Calls {
			due[c.ID] = true
		}
		if r.Kind == journal.KindResult {
			results[r.Step.CallID]++
		}
	}
	for id := range due {
		if results[id] != 1 {
			t.Errorf("call %s has %d results", id, results[id])
		}
	}
}

func TestAChildSessionIsRecordedSeparately(t *testing.T) {
	b := fakeAgent("reviewer", enginetest.Toolbox{echo("Read", tool.ReadOnly)}, calls("Read {}"), says("fine"))
	s := delegating(fakeAgents{"reviewer": b}, calls(`agent {"agent":"reviewer","prompt":"look"}`), says("ok"))
	out := s.run(t)
	var sessions, names []string
	for r := range s.journal.Read() {
		if r.Kind == journal.KindStep || r.Kind == journal.KindResult {
			sessions = append(sessions, fmt.Sprintf("%s %s %s", r.Session, r.Step.Role, r.Step.Scope.Agent))
		}
	}
	want := []string{" user ", " assistant ", "s2c1 user reviewer", "s2c1 assistant reviewer", "s2c1 tool reviewer", "s2c1 assistant reviewer", " tool ", " assistant "}
	if diff := cmp.Diff(want, sessions); diff != "" {
		t.Errorf("records -want +got:\n%s", diff)
	}
	for _, r := range out.Progress.Recent {
		names = append(names, r.Name)
	}
	if diff := cmp.Diff([]string{"m", "reviewer/m-reviewer", "reviewer/Read", "reviewer/m-reviewer", "agent", "m"}, names); diff != "" {
		t.Errorf("recent -want +got:\n%s", diff)
	}
	if got := scriptOf(b).asked[1]; got.System != "be reviewer" || got.CacheKey != "uid/s2c1" || got.Steps[1].Calls[0].ID != "s2c1.s2c1" || got.Steps[0].Text() != "look" {
		t.Errorf("it was asked %+v", got)
	}
	scope := step.Scope{Depth: 1, Parent: "s2c1", Agent: "reviewer"}
	begun := 0
	for i, e := range s.sink.types {
		if e == step.EventChildStarted || e == step.EventChildFinished {
			begun++
			if s.sink.scopes[i] != scope {
				t.Errorf("%s is told of %+v", e, s.sink.scopes[i])
			}
		}
	}
	if begun != 2 {
		t.Errorf("%d events of its beginning and end", begun)
	}
	if p := out.Progress; p.Counts.Steps != 4 || p.Counts.ToolCalls != 2 || p.Usage.TotalTokens != 60 {
		t.Errorf("one meter for all: %+v %+v", p.Counts, p.Usage)
	}
}

func TestAgentsCallOnlySoDeep(t *testing.T) {
	again := `agent {"agent":"b","prompt":"deeper"}`
	b := fakeAgent("b", enginetest.Toolbox{agentTool()}, calls(again), calls(again), says("too deep"), says("second"))
	s := delegating(fakeAgents{"b": b}, calls(again), says("ok"))
	s.run(t)
	if got := scriptOf(b).asked[2].Steps[2].Text(); got != "Error: "+fmt.Sprintf(resultDeep, 2) {
		t.Errorf("the third is told %q", got)
	}
	wholeTree(t, s)
}

func TestAnAgentMayLowerTheDepthBelowIt(t *testing.T) {
	again := `agent {"agent":"b","prompt":"deeper"}`
	b := fakeAgent("b", enginetest.Toolbox{agentTool()}, calls(again), says("alone then"))
	b.Agent.Limits = task.Limits{Steps: 5}
	s := delegating(fakeAgents{"b": b}, calls(again), says("ok"))
	s.run(t)
	if got := scriptOf(b).asked[1].Steps[2].Text(); got != "Error: "+fmt.Sprintf(resultDeep, 1) {
		t.Errorf("it is told %q", got)
	}
}

func TestTheSameAgentWithAFreshSession(t *testing.T) {
	s := delegating(nil, calls(`agent {"prompt":"alone"}`), says("alone"), says("ok"))
	s.Actors = func(d Delegation) (*Actor, error) {
		if d.Agent != "a" || d.Call != "s2c1" {
			return nil, fmt.Errorf("asked for %+v", d)
		}
		return &s.Actor, nil
	}
	s.run(t)
	if got := s.model.asked[1]; len(got.Steps) != 1 || got.Steps[0].Text() != "alone" {
		t.Errorf("it begins with %v", got.Steps)
	}
}

func TestAgentsWorkSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(name string) *Actor {
			answer := says(name)
			answer.during = func(context.Context) error { time.Sleep(time.Second); return nil }
			return fakeAgent(name, nil, answer)
		}
		s := delegating(fakeAgents{"b": slow("b"), "c": slow("c")}, calls(`agent {"agent":"b"}`, `agent {"agent":"c"}`), says("ok"))
		began := time.Now()
		s.run(t)
		if took := time.Since(began); took != time.Second {
			t.Errorf("took %s", took)
		}
		if got := s.transcript(t); !strings.Contains(got, "tool: b\ntool: c\nassistant: ok") {
			t.Errorf("the session is\n%s", got)
		}
	})
}

func TestALimitOfTheRunEndsEveryBranch(t *testing.T) {
	endless := func(name string) *Actor {
		var turns []turn
		for i := range 20 {
			turns = append(turns, calls(fmt.Sprintf(`Read {"n":%d}`, i)))
		}
		return fakeAgent(name, enginetest.Toolbox{echo("Read", tool.ReadOnly)}, turns...)
	}
	s := delegating(fakeAgents{"b": endless("b"), "c": endless("c")}, calls(`agent {"agent":"b"}`, `agent {"agent":"c"}`), says("never"))
	s.Task.Limits.Steps = 9
	out := s.run(t)
	if out.Reason != task.ReasonStepLimit || out.Progress.Counts.Steps > 10 {
		t.Errorf("ended %s after %d steps", out.Reason, out.Progress.Counts.Steps)
	}
	wholeTree(t, s)
}

func TestTheDurationEndsASessionBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := newTool("Hang", tool.Once, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		})
		deaf := newTool("Deaf", tool.Once, func(context.Context, tool.Call) (tool.Result, error) {
			time.Sleep(time.Hour)
			return tool.Result{}, nil
		})
		for name, tc := range map[string]struct {
			call  string
			own   int64
			limit int64
			want  task.Reason
		}{
			"its own":                         {"Hang {}", 10, 60, task.ReasonFinished},
			"the Run's":                       {"Hang {}", 0, 10, task.ReasonDurationLimit},
			"the Run's, and a call is deaf":   {"Deaf {}", 0, 10, task.ReasonDurationLimit},
			"its own, while its call is deaf": {"Deaf {}", 10, 60, task.ReasonFinished},
		} {
			b := fakeAgent("b", enginetest.Toolbox{hang, deaf}, calls(tc.call), says("never"))
			b.Agent.Limits.DurationSeconds = tc.own
			s := delegating(fakeAgents{"b": b}, calls(`agent {"agent":"b"}`), says("ok"))
			s.Task.Limits.DurationSeconds = tc.limit
			if out := s.run(t); out.Reason != tc.want {
				t.Errorf("%s: ended %s: %s", name, out.Reason, out.Message)
			}
			wholeTree(t, s)
		}
		time.Sleep(2 * time.Hour)
	})
}

func TestACallOfAnAgentMayHaveATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := newTool("Hang", tool.Once, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		})
		s := delegating(fakeAgents{"b": fakeAgent("b", enginetest.Toolbox{hang}, calls("Hang {}"), says("never"))}, calls(`agent {"agent":"b"}`), says("ok"))
		short := agentTool()
		short.Timeout = time.Minute
		s.Actor.Tools = enginetest.Toolbox{short}
		if out := s.run(t); out.Reason != task.ReasonFinished {
			t.Errorf("ended %s: %s", out.Reason, out.Message)
		}
		if got, want := s.steps(t)[2].Text(), "Error: "+toolcall.ResultTimeout(time.Minute); got != want {
			t.Errorf("result %q, want %q", got, want)
		}
		wholeTree(t, s)
	})
}

// A tree of sessions is killed behind each of its records in turn, then taken
// up by the next attempt.
func TestATreeKilledAnywhereEndsTheSame(t *testing.T) {
	did := effects{}
	build := func() *testRun {
		bash := newTool("Bash", tool.Once, func(_ context.Context, c tool.Call) (tool.Result, error) {
			did[c.ID]++
			return tool.Result{Text: "did"}, nil
		})
		bash.Concurrency = tool.Sequential
		worker := &Actor{Agent: task.Agent{Name: "w", ParallelTools: 1}, Model: Model{Model: bySession{3, `Bash {"n":1}`}, Name: "m"}, Tools: enginetest.Toolbox{bash}}
		lead := &Actor{Agent: task.Agent{Name: "l", ParallelTools: 1}, Model: Model{Model: bySession{1, `agent {"agent":"w"}`}, Name: "m"}, Tools: enginetest.Toolbox{agentTool(), bash}}
		s := delegating(fakeAgents{"w": worker, "l": lead})
		s.Actor.Model.Model = bySession{2, `agent {"agent":"l"}`, `Bash {"n":2}`}
		s.Actor.Tools = enginetest.Toolbox{agentTool(), bash}
		return s
	}
	whole := build()
	if out := whole.run(t); out.Reason != task.ReasonFinished {
		t.Fatalf("ended %s: %s", out.Reason, out.Message)
	}
	total := 0
	for range whole.journal.Read() {
		total++
	}
	want := whole.transcript(t)
	for at := range total {
		t.Run(fmt.Sprintf("behind record %d", at), func(t *testing.T) {
			clear(did)
			s := build()
			left := at
			s.Journal = crashingLog{Memory: s.journal, left: &left}
			s.run(t)
			next := build()
			next.journal, next.Journal = s.journal, s.journal
			if out := next.run(t); out.Reason != task.ReasonFinished {
				t.Fatalf("ended %s: %s", out.Reason, out.Message)
			}
			wholeTree(t, next)
			for call, n := range did {
				if n > 1 {
					t.Errorf("%s happened %d times", call, n)
				}
			}
			if got := strings.ReplaceAll(next.transcript(t), "Error: "+toolcall.ResultLost, "did"); got != want {
				t.Errorf("the session is\n%s\nwant\n%s", got, want)
			}
			if got, want := next.state(t), 0; len(got.Results) != want {
				t.Errorf("%d results without a turn", len(got.Results))
			}
		})
	}
}
