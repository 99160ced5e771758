package engine

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

func TestLimitsOfCalls(t *testing.T) {
	cases := map[string]struct {
		limits task.Limits
		want   string
		told   string
	}{
		"of the model": {
			task.Limits{Steps: 30, ModelCalls: 2},
			"Used 2 of 2 modelCalls; raise limits.modelCalls",
			"user: go\nassistant:  Read{\"n\":1} Read{\"n\":2}\ntool: Read{\"n\":1}\ntool: Read{\"n\":2}\nassistant:  Read{\"n\":3} Read{\"n\":4}\ntool: Read{\"n\":3}\ntool: Read{\"n\":4}",
		},
		"of tools, in call order": {
			task.Limits{Steps: 30, ToolCalls: 3},
			"Used 3 of 3 toolCalls; raise limits.toolCalls",
			"user: go\nassistant:  Read{\"n\":1} Read{\"n\":2}\ntool: Read{\"n\":1}\ntool: Read{\"n\":2}\nassistant:  Read{\"n\":3} Read{\"n\":4}\ntool: Read{\"n\":3}\ntool: Error: " + toolcall.ResultTooMany,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newTestRun(enginetest.Toolbox{echo("Read", tool.ReadOnly)},
				calls(`Read {"n":1}`, `Read {"n":2}`), calls(`Read {"n":3}`, `Read {"n":4}`), says("never"))
			s.Task.Limits = tc.limits
			out := s.run(t)
			if out.Reason != task.ReasonStepLimit || !strings.HasPrefix(out.Message, tc.want) {
				t.Errorf("ended %s: %s", out.Reason, out.Message)
			}
			if got := s.transcript(t); got != tc.told {
				t.Errorf("the session is\n%s\nwant\n%s", got, tc.told)
			}
		})
	}
}

// Of the calls that count, those that failed are counted; one beyond the limit is not a call.
func TestFailedToolCallsAreCounted(t *testing.T) {
	s := newTestRun(enginetest.Toolbox{echo("Read", tool.ReadOnly)}, calls("Read {}", "Nothing {}", "Read {}", "Read {}"), says("never"))
	s.Task.Limits.ToolCalls = 2
	out := s.run(t)
	if want := (task.Counts{Steps: 1, ModelCalls: 1, ToolCalls: 3, ToolErrors: 1, Errors: 2}); out.Progress.Counts != want {
		t.Errorf("counts %+v, want %+v", out.Progress.Counts, want)
	}
}

func TestTheLastCallMayEndTheWork(t *testing.T) {
	s := newTestRun(enginetest.Toolbox{echo("Read", tool.ReadOnly), ending("Finish")}, calls("Read {}", "Finish {}"))
	s.Task.Limits.ToolCalls = 1
	if out := s.run(t); out.Reason != task.ReasonFinished {
		t.Errorf("ended %s: %s", out.Reason, out.Message)
	}
}

func TestALimitOfCallsIsOneForAllSessions(t *testing.T) {
	many := func(name string) *Actor {
		return fakeAgent(name, enginetest.Toolbox{echo("Read", tool.ReadOnly)}, calls("Read {}", "Read {}", "Read {}", "Read {}"), says(name))
	}
	s := delegating(fakeAgents{"b": many("b"), "c": many("c")}, calls(`agent {"agent":"b"}`, `agent {"agent":"c"}`), says("never"))
	s.Task.Limits.ToolCalls = 6
	out := s.run(t)
	if out.Reason != task.ReasonStepLimit || out.Progress.Counts.ToolCalls != 6 {
		t.Errorf("ended %s after %d calls: %s", out.Reason, out.Progress.Counts.ToolCalls, out.Message)
	}
	wholeTree(t, s)
}

// What is counted into a session is counted into all above it, and comes back
// from the journal for each.
func TestTheMeterIsATree(t *testing.T) {
	deepest := fakeAgent("c", nil, says("c"))
	middle := fakeAgent("b", enginetest.Toolbox{agentTool()}, calls(`agent {"agent":"c"}`), says("b"))
	s := delegating(fakeAgents{"b": middle, "c": deepest}, calls(`agent {"agent":"b"}`), says("ok"))
	s.Task.Meter.Steps = 5
	s.run(t)
	want := map[string]int64{"s2c1": 3, "s2c1.s2c1": 1}
	var b state.Run
	for rec := range s.journal.Read() {
		if rec.Kind == journal.KindResult && rec.Session == "" {
			break // here the sessions below are forgotten
		}
		if rec.Kind == journal.KindResult {
			if got := b.Session("s2c1.s2c1").Used.Steps; got != want["s2c1.s2c1"] {
				t.Errorf("the deepest used %d steps", got)
			}
		}
		if err := b.Apply(rec); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.Session("s2c1").Used.Steps; got != want["s2c1"] || b.Meter.Steps != 9 {
		t.Errorf("the middle used %d steps, the Run %d", got, b.Meter.Steps)
	}
}

// same is so many turns that call the same.
func same(n int) []turn {
	return slices.Repeat([]turn{calls("Read {}")}, n)
}

func TestAStuckAgentIsNudgedOnceAndThenEnded(t *testing.T) {
	s := newTestRun(enginetest.Toolbox{echo("Read", tool.ReadOnly)}, same(20)...)
	out := s.run(t)
	if out.Reason != task.ReasonStuck || !strings.Contains(out.Message, "SameResult") {
		t.Errorf("ended %s: %s", out.Reason, out.Message)
	}
	var told []string
	for _, st := range s.steps(t) {
		if st.Note == step.NoteStuck {
			told = append(told, st.Text())
		}
	}
	if len(told) != 1 || !strings.HasPrefix(told[0], nudgeStuck[:20]) || !strings.Contains(told[0], "Read") || len(s.model.asked) != 8 {
		t.Errorf("told %q, asked %d times", told, len(s.model.asked))
	}
	sound(t, s)
}

func TestPollingABackgroundJobIsNoLoop(t *testing.T) {
	job := newTool("Output", tool.ReadOnly, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Text: "(no new output)\nstill running", Pending: true}, nil
	})
	s := newTestRun(enginetest.Toolbox{job}, append(slices.Repeat([]turn{calls("Output {}")}, 12), says("I wait no longer"))...)
	if out := s.run(t); out.Reason != task.ReasonFinished || len(s.sink.of(step.EventNudged)) != 0 {
		t.Errorf("ended %s after %d reminders: %s", out.Reason, len(s.sink.of(step.EventNudged)), out.Message)
	}
}

func TestPollingForEverEndsByALimit(t *testing.T) {
	job := newTool("Output", tool.ReadOnly, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Text: "still running", Pending: true}, nil
	})
	s := newTestRun(enginetest.Toolbox{job}, slices.Repeat([]turn{calls("Output {}")}, 40)...)
	s.Task.Limits.Steps = 30
	if out := s.run(t); out.Reason != task.ReasonStepLimit {
		t.Errorf("ended %s: %s", out.Reason, out.Message)
	}
}

func TestAnAgentThatGoesRoundInCircles(t *testing.T) {
	t.Run("may find its way", func(t *testing.T) {
		s := newTestRun(enginetest.Toolbox{echo("Read", tool.ReadOnly)}, append(same(4), says("I see"))...)
		if out := s.run(t); out.Reason != task.ReasonFinished || len(s.sink.of(step.EventNudged)) != 1 {
			t.Errorf("ended %s: %s", out.Reason, out.Message)
		}
	})
	t.Run("knows that it was told when it is resumed", func(t *testing.T) {
		first := newTestRun(enginetest.Toolbox{echo("Read", tool.ReadOnly)}, same(5)...)
		left := 4*4 + 5 // the nudge is recorded
		first.Journal = crashingLog{Memory: first.journal, left: &left}
		first.run(t)
		second := first.again(enginetest.Toolbox{echo("Read", tool.ReadOnly)}, same(20)...)
		if out := second.run(t); out.Reason != task.ReasonStuck || len(second.model.asked) > 4 {
			t.Errorf("ended %s after %d questions: %s", out.Reason, len(second.model.asked), out.Message)
		}
	})
	t.Run("below is told to its caller", func(t *testing.T) {
		s := delegating(fakeAgents{"b": fakeAgent("b", enginetest.Toolbox{echo("Read", tool.ReadOnly)}, same(20)...)}, calls(`agent {"agent":"b"}`), says("ok"))
		if out := s.run(t); out.Reason != task.ReasonFinished || !strings.Contains(s.steps(t)[2].Text(), "Stuck") {
			t.Errorf("ended %s: %s", out.Reason, s.transcript(t))
		}
	})
}

func TestDurationEndsWhatRuns(t *testing.T) {
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	cases := map[string]struct {
		turns []turn
		last  string
	}{
		"a model call": {turns: []turn{{during: wait}}, last: "go"},
		"a tool call":  {turns: []turn{calls("Wait {}")}, last: "Error: Interrupted: Used 1m0s of 1m0s duration; raise limits.duration of the Run if it sets one, otherwise of the Agent, or give the Run less to do"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestRun(enginetest.Toolbox{newTool("Wait", tool.Once, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
					return tool.Result{}, wait(ctx)
				})}, tc.turns...)
				s.Task.Limits.DurationSeconds = 60
				s.Task.Meter.DurationSeconds = 20
				began := time.Now()
				out := s.run(t)
				if out.Reason != task.ReasonDurationLimit || time.Since(began) != 40*time.Second {
					t.Errorf("ended %s after %s: %s", out.Reason, time.Since(began), out.Message)
				}
				steps := s.steps(t)
				if got := steps[len(steps)-1].Text(); got != tc.last {
					t.Errorf("last said %q, want %q", got, tc.last)
				}
				if out.Progress.Usage.DurationSeconds != 60 {
					t.Errorf("the meter says %d s", out.Progress.Usage.DurationSeconds)
				}
			})
		})
	}
}

func TestLimitsThatAreNearAreReportedOnce(t *testing.T) {
	s := newTestRun(enginetest.Toolbox{echo("Read", tool.ReadOnly)}, calls("Read {}"), calls("Read {}"), calls("Read {}"), calls("Read {}"), says("ok"))
	s.Task.Limits = task.Limits{Steps: 5, Tokens: 1000}
	s.run(t)
	var told []events.Payload
	for _, e := range s.sink.all {
		if e.EventType() == step.EventLimitNear {
			told = append(told, e)
		}
	}
	if diff := cmp.Diff([]events.Payload{events.LimitNear{Limit: "steps", Used: 4, Max: 5}}, told); diff != "" {
		t.Errorf("events -want +got:\n%s", diff)
	}
}
