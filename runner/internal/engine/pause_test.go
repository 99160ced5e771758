package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// pausing is a testRun that a test pauses, with tools that take ten seconds.
func pausing(turns ...turn) (*testRun, *fakeSignals) {
	slow := func(name string) tool.Tool {
		return newTool(name, tool.Once, func(ctx context.Context, c tool.Call) (tool.Result, error) {
			select {
			case <-time.After(10 * time.Second):
				return tool.Result{Text: "did " + name}, nil
			case <-ctx.Done():
				return tool.Result{}, ctx.Err()
			}
		})
	}
	s := newTestRun(enginetest.Toolbox{slow("Slow"), slow("Other"), slow("Bash"), askTool(), agentTool()}, turns...)
	s.CanAsk, s.Actor.Policy = true, asksBefore
	s.Actor.Agent.ParallelTools = 1
	s.Task.Limits.Depth = 1
	return s, s.signals
}

func TestAPauseOfADurableRunLeavesAtTheNextSafePoint(t *testing.T) {
	working := func(t turn) turn {
		t.during = func(context.Context) error { time.Sleep(5 * time.Second); return nil }
		return t
	}
	limited := fails(&model.RateLimitedError{RetryAfter: 5 * time.Minute, Message: "slow down"})
	cases := map[string]struct {
		turns   []turn
		at      time.Duration // when it is paused
		want    time.Duration // when it leaves
		told    string        // the session then
		pending int
	}{
		"before it begins":               {[]turn{says("never")}, 0, 0, "", 0},
		"behind the model's turn":        {[]turn{working(calls("Slow {}"))}, time.Second, 5 * time.Second, "user: go\nassistant:  Slow{}", 0},
		"behind the call that runs":      {[]turn{calls("Slow {}", "Other {}")}, time.Second, 10 * time.Second, "user: go\nassistant:  Slow{} Other{}", 0},
		"behind the last call of a turn": {[]turn{calls("Slow {}"), says("never")}, time.Second, 10 * time.Second, "user: go\nassistant:  Slow{}\ntool: did Slow", 0},
		"at once while people are asked": {[]turn{calls("Bash {}")}, time.Second, time.Second, "user: go\nassistant:  Bash{}", 1},
		"beside a call that runs":        {[]turn{calls(`agent {"agent":"b"}`)}, time.Second, 10 * time.Second, `user: go` + "\n" + `assistant:  agent{"agent":"b"}`, 1},
		"while a provider asks to wait":  {[]turn{limited}, time.Second, time.Second, "user: go", 0},
		"not where the work is done":     {[]turn{working(says("done"))}, time.Second, 5 * time.Second, "user: go\nassistant: done", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out, took, told := pausedAt(t, tc.at, tc.turns...)
				want, state := task.ReasonPaused, approval.StatePaused
				if strings.HasSuffix(tc.told, "done") {
					want, state = task.ReasonFinished, ""
				}
				if out.Reason != want || took != tc.want {
					t.Errorf("ended %s after %s: %s", out.Reason, took, out.Message)
				}
				if told != tc.told {
					t.Errorf("the session is\n%s\nwant\n%s", told, tc.told)
				}
				if p := out.Progress; p.State != state || len(p.Pending) != tc.pending {
					t.Errorf("the state is %q, pending %v", p.State, p.Pending)
				}
			})
		})
	}
}

// pausedAt is how a durable Run ends that is paused after a while, when, and what
// was said by then.
func pausedAt(t *testing.T, at time.Duration, turns ...turn) (out Outcome, took time.Duration, told string) {
	t.Helper()
	s, l := pausing(turns...)
	s.Durable = true
	s.Actors = fakeAgents{"b": fakeAgent("b", s.Actor.Tools.(enginetest.Toolbox), calls("Bash {}", "Slow {}"))}.actors
	began := time.Now()
	if at == 0 {
		l.pause(true)
	}
	end := s.running(t.Context())
	time.Sleep(at)
	l.pause(true)
	out = end()
	return out, time.Since(began), s.transcript(t)
}

// Where the journal would die with the pod, a paused Run waits in it.
func TestAPauseHoldsARunInPlace(t *testing.T) {
	cases := map[string]struct {
		turns []turn
		want  string
		used  int64 // of the duration, in seconds
	}{
		"between calls":        {[]turn{calls("Slow {}", "Other {}"), says("ok")}, "tool: did Slow\ntool: did Other\nassistant: ok", 20},
		"between turns":        {[]turn{calls("Slow {}"), says("ok")}, "tool: did Slow\nassistant: ok", 10},
		"before it begins":     {[]turn{says("ok")}, "user: go\nassistant: ok", 0},
		"in the session below": {[]turn{calls(`agent {"agent":"b"}`), says("ok")}, "tool: b\nassistant: ok", 10},
		"for as long as a provider asks to wait": {
			[]turn{fails(&model.RateLimitedError{RetryAfter: 20 * time.Second, Message: "slow down"}), says("ok")}, "user: go\nassistant: ok", 0,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, l := pausing(tc.turns...)
				s.Actors = fakeAgents{"b": fakeAgent("b", s.Actor.Tools.(enginetest.Toolbox), calls("Slow {}"), says("b"))}.actors
				s.Task.Limits.DurationSeconds = 60
				if name == "before it begins" {
					l.pause(true)
				}
				end := s.running(t.Context())
				time.Sleep(time.Second)
				l.pause(true)
				time.Sleep(24 * time.Hour)
				if p := s.reporter.last(); p.State != approval.StatePaused || len(s.model.asked) > 1 {
					t.Errorf("the state is %q, the model was asked %d times", p.State, len(s.model.asked))
				}
				l.pause(false)
				out := end()
				if out.Reason != task.ReasonFinished || out.Progress.Usage.DurationSeconds != tc.used || out.Progress.State != "" {
					t.Errorf("ended %s after %d s: %s", out.Reason, out.Progress.Usage.DurationSeconds, out.Message)
				}
				if got := s.transcript(t); !strings.HasSuffix(got, tc.want) {
					t.Errorf("the session is\n%s", got)
				}
			})
		})
	}
}

// A pause holds what a person approves meanwhile, too.
func TestWhatIsApprovedWhileItIsPausedIsMadeAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := pausing(calls("Bash {}"), says("ok"))
		end := s.running(t.Context())
		time.Sleep(time.Second)
		l.pause(true)
		time.Sleep(time.Second)
		p := s.reporter.last()
		if p.State != approval.StatePaused || len(p.Pending) != 1 {
			t.Fatalf("state %q, pending %v", p.State, p.Pending)
		}
		l.say(approve("d", p.Pending[0].ID, ""))
		time.Sleep(time.Hour)
		if got := s.doneWith("Bash"); len(got) > 0 || s.reporter.last().State != approval.StatePaused {
			t.Errorf("made %v while paused; state %q", got, s.reporter.last().State)
		}
		l.pause(false)
		end()
		if got := s.doneWith("Bash"); len(got) != 1 {
			t.Errorf("made %v", got)
		}
	})
}

func TestAHeldRunEnds(t *testing.T) {
	cases := map[string]struct {
		act  func(s *testRun, stop func())
		want task.Reason
	}{
		"when it is stopped":    {func(_ *testRun, stop func()) { stop() }, task.ReasonStopped},
		"when its pod goes":     {func(s *testRun, _ func()) { s.sigterm() }, task.ReasonInterrupted},
		"when its runner fails": {func(*testRun, func()) {}, task.ReasonRunnerFailed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				s, l := pausing(calls("Slow {}", "Other {}"), says("never"))
				end := s.running(ctx)
				time.Sleep(time.Second)
				l.pause(true)
				time.Sleep(time.Minute)
				tc.act(s, l.stop)
				if tc.want == task.ReasonRunnerFailed {
					cancel(errors.New("boom"))
				}
				if out := end(); out.Reason != tc.want {
					t.Errorf("ended %s: %s", out.Reason, out.Message)
				}
				if tc.want == task.ReasonStopped {
					sound(t, s)
				}
				cancel(nil)
			})
		})
	}
}

// A Run whose duration is used up ends though it is paused, with results for what
// an earlier runner left open.
func TestAPauseDoesNotHoldWhatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := pausing()
		s.left(t, tool.ReadOnly)
		s.Actors = fakeAgents{"child": fakeAgent("child", s.Actor.Tools.(enginetest.Toolbox))}.actors
		s.Task.Meter.DurationSeconds, s.Task.Limits.DurationSeconds = 60, 60
		l.pause(true)
		if out := s.run(t); out.Reason != task.ReasonDurationLimit {
			t.Errorf("ended %s: %s", out.Reason, out.Message)
		}
		sound(t, s)
	})
}

// Where one branch is held while another uses up the duration, the calls of both
// get their results.
func TestADurationThatIsUsedUpWhileABranchIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := pausing(calls(`agent {"agent":"b"}`, "Hang {}"))
		hang := newTool("Hang", tool.ReadOnly, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		})
		s.Actor.Tools = append(s.Actor.Tools.(enginetest.Toolbox), hang)
		s.Actor.Agent.ParallelTools, s.Task.Limits.DurationSeconds = 2, 60
		slow := calls("Slow {}")
		slow.during = func(context.Context) error { time.Sleep(5 * time.Second); return nil }
		s.Actors = fakeAgents{"b": fakeAgent("b", s.Actor.Tools.(enginetest.Toolbox), slow)}.actors
		end := s.running(t.Context())
		time.Sleep(time.Second)
		l.pause(true)
		if out := end(); out.Reason != task.ReasonDurationLimit {
			t.Errorf("ended %s: %s", out.Reason, out.Message)
		}
		results := map[string]int{}
		for r := range s.journal.Read() {
			if r.Step != nil && r.Step.CallID != "" {
				results[r.Step.CallID]++
			}
		}
		if diff := cmp.Diff(map[string]int{"s2c1": 1, "s2c2": 1, "s2c1.s2c1": 1}, results); diff != "" {
			t.Errorf("results -want +got:\n%s", diff)
		}
	})
}

// What an earlier runner had running is noted in each session that is resumed,
// once, though attempts come and go before its model has a turn.
func TestASessionGetsANoteOfLostProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tools := enginetest.Toolbox{agentTool(), echo("Bash", tool.Once)}
		b := fakeAgent("b", tools, calls("Bash {}"), says("b"))
		c := newSignals()
		begin := func(s *testRun) *testRun {
			s.withApprovers(c)
			s.Actors, s.Actor.Policy = fakeAgents{"b": b}.actors, asksBefore
			s.Durable, s.Task.Limits.Depth = true, 1
			return s
		}
		s := begin(newTestRun(tools, calls(`agent {"agent":"b"}`), says("ok")))
		s.Lost = []string{"of somebody else"} // nothing was taken up
		if out := s.run(t); out.Reason != task.ReasonWaiting {
			t.Fatalf("ended %s: %s", out.Reason, out.Message)
		}
		script := s.model
		for n := range 3 {
			s = begin(s.again(tools))
			s.Lost = []string{"background job job-1 (npm run dev)", "python session main\x1b[2J"}
			s.Actor.Model.Model = script
			if n == 2 {
				c.say(deny("d", requested("s2c1.s2c1", "Bash", "{}"), ""))
			}
			s.run(t)
		}
		const note = "The processes that ran beside this session have ended: the runner or its pod was replaced.\n" +
			"- background job job-1 (npm run dev)\n- python session main[2J\nFiles are as they were left. Start again what you still need."
		want := "user: go\nassistant:  agent{\"agent\":\"b\"}\ntool: b\nuser: " + note + "\nassistant: ok"
		if got := s.transcript(t); got != want {
			t.Errorf("the session is\n%s\nwant\n%s", got, want)
		}
		last := scriptOf(b).asked[1].Steps
		if got := last[len(last)-1]; got.Text() != note || got.Note != step.NoteRunner || len(last) != 4 {
			t.Errorf("the session below is\n%s", transcriptOf(last))
		}
	})
}

func TestARetryIsNotedThoughItWaitsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s := governedRun(c, calls("Bash {}"))
		s.Durable = true
		s.run(t)
		for n, retry := range []string{"ToolUnavailable", ""} {
			s = s.again(s.Actor.Tools.(enginetest.Toolbox), says("ok"))
			s.withApprovers(c)
			s.Actor.Policy, s.Durable = asksBefore, true
			s.Task.Attempt, s.Task.Retry = n+2, retry
			if n == 1 {
				c.say(deny("d", requested("s2c1", "Bash", "{}"), ""))
			}
			s.run(t)
		}
		if got := s.transcript(t); strings.Count(got, "The attempt before this one ended: ToolUnavailable. This is attempt 2") != 1 {
			t.Errorf("the session is\n%s", got)
		}
	})
}

// An interrupted call is reported with what it had printed, without secrets and
// bounded.
func TestAnInterruptedCallIsReportedWithItsOutput(t *testing.T) {
	long := strings.Repeat("ü", toolcall.MaxCaptured)
	cases := map[string]struct{ out, want string }{
		"nothing":  {" \n", "Error: " + toolcall.ResultLost},
		"some":     {"half\n", "Error: " + toolcall.ResultLost + "\nIts output until then:\nhalf"},
		"a secret": {"key " + canary, "Error: " + toolcall.ResultLost + "\nIts output until then:\nkey ‹secret:s/k›"},
		"a lot":    {"x" + long, "Error: " + toolcall.ResultLost + "\nIts output until then:\n…" + long[len(long)-toolcall.MaxCaptured:]},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			first := newTestRun(enginetest.Toolbox{echo("Bash", tool.Once)}, calls("Bash {}"))
			left := 4 // the intent, not the result
			first.Journal = crashingLog{Memory: first.journal, left: &left}
			first.run(t)
			next := first.again(enginetest.Toolbox{echo("Bash", tool.Once)}, says("ok"))
			next.Redact = redacting()
			next.Captured = func(call string) string {
				if call != "s2c1" {
					return "of another call"
				}
				return tc.out
			}
			next.run(t)
			if diff := cmp.Diff(tc.want, next.steps(t)[2].Text()); diff != "" {
				t.Errorf("the model reads -want +got:\n%s", diff)
			}
		})
	}
}
