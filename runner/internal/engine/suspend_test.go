package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

func TestARunnerThatOnlyWaitsForPeopleLeaves(t *testing.T) {
	digits := strings.TrimPrefix(requested("s2c1", "Bash", "{}"), "s2c1")
	bash := "s2c1" + digits
	limited := fails(&model.RateLimitedError{RetryAfter: 30 * time.Minute, Message: "slow down"})
	away := fails(&model.UnavailableError{Message: "connection refused"})
	busyFor := func(d time.Duration) func() bool {
		began := time.Now()
		return func() bool { return time.Since(began) < d }
	}
	cases := map[string]struct {
		calls  []string
		change func(*testRun)
		want   time.Duration
		state  string
		ids    []string
	}{
		"after two minutes":            {[]string{"Bash {}"}, nil, 2 * time.Minute, approval.StateApproval, []string{bash}},
		"after as long as it may hold": {[]string{"Bash {}"}, func(s *testRun) { s.Hold = 10 * time.Second }, 10 * time.Second, approval.StateApproval, []string{bash}},
		"with a question":              {[]string{`Ask {"q":"a"}`}, nil, 2 * time.Minute, approval.StateAnswer, []string{"s2c1"}},
		"with several":                 {[]string{`Ask {"q":"a"}`, "Bash {}", "Bash {}"}, nil, 2 * time.Minute, approval.StateAnswer, []string{"s2c1", "s2c2" + digits, "s2c3" + digits}},
		"with a used up limit": {
			[]string{"Read {}"},
			func(s *testRun) { s.Task.Limits.Steps, s.Task.Limits.Ask = 1, true },
			2 * time.Minute, approval.StateAnswer,
			[]string{"limit-steps-1"},
		},
		"when the others are done": {
			[]string{"Bash {}", "Slow {}"},
			nil, 7 * time.Minute, approval.StateApproval,
			[]string{bash},
		},
		"when nothing runs in the background": {
			[]string{"Bash {}"},
			func(s *testRun) { s.Busy = busyFor(time.Hour) },
			time.Hour, approval.StateApproval,
			[]string{bash},
		},
		"from the session below": {[]string{`agent {"agent":"b"}`}, nil, 2 * time.Minute, approval.StateApproval, []string{"s2c1.s2c1" + digits}},
		"beside a provider that asks for a long wait": {
			[]string{"Bash {}", `agent {"agent":"limited"}`},
			nil, 2 * time.Minute, approval.StateApproval,
			[]string{bash},
		},
		"after a long outage of a model": {
			[]string{"Bash {}", `agent {"agent":"away"}`},
			nil, 10 * time.Minute, approval.StateApproval,
			[]string{bash},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := waitingRun(calls(tc.calls...))
				s.Actors = fakeAgents{"b": fakeAgent("b", s.Actor.Tools.(enginetest.Toolbox), calls("Bash {}")), "limited": fakeAgent("limited", nil, limited, says("b")), "away": fakeAgent("away", nil, slices.Repeat([]turn{away}, 10)...)}.actors
				if tc.change != nil {
					tc.change(s)
				}
				s.leftAfter(t, tc.want)
				last := s.reporter.reported[len(s.reporter.reported)-1]
				if diff := cmp.Diff(tc.ids, asked(last)); diff != "" || last.State != tc.state {
					t.Errorf("told last: state %q, pending -want +got:\n%s", last.State, diff)
				}
			})
		})
	}
}

// waitingRun is that of a durable Run, with a tool that takes five minutes.
func waitingRun(t turn) *testRun {
	slow := newTool("Slow", tool.ReadOnly, func(context.Context, tool.Call) (tool.Result, error) {
		time.Sleep(5 * time.Minute)
		return tool.Result{}, nil
	})
	slow.Timeout = tool.Unbounded
	s := governedRun(newSignals(), t, says("never"))
	s.Actor.Tools = enginetest.Toolbox{echo("Bash", tool.Once), slow, askTool(), agentTool(), echo("Read", tool.ReadOnly)}
	s.Durable, s.Task.Limits.Depth = true, 1
	return s
}

// leftAfter runs the testRun and asserts that the runner leaves then, with nothing
// recorded as ended and nothing made that was not approved.
func (tr *testRun) leftAfter(t *testing.T, want time.Duration) {
	t.Helper()
	began := time.Now()
	out := tr.run(t)
	// What runs in the background tells nobody that it has ended.
	if late := time.Since(began) - want; out.Reason != task.ReasonWaiting || late < 0 || late > approval.SuspendRetry {
		t.Fatalf("ended %s after %s: %s", out.Reason, time.Since(began), out.Message)
	}
	last := tr.reporter.reported[len(tr.reporter.reported)-1]
	if diff := cmp.Diff(out.Progress, last, cmpopts.IgnoreFields(task.Progress{}, "Step")); diff != "" {
		t.Errorf("the outcome tells another state than was told last:\n%s", diff)
	}
	if st := tr.state(t); st.Ended != "" || len(tr.doneWith("Bash")) > 0 {
		t.Errorf("recorded as ended %q, made %v", st.Ended, tr.doneWith("Bash"))
	}
}

// asked are the ids of what people are asked.
func asked(p task.Progress) []string {
	var ids []string
	for _, q := range p.Pending {
		ids = append(ids, q.ID)
	}
	return sorted(ids)
}

func TestARunnerWhoseJournalDiesWithItStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s := governedRun(c, calls("Bash {}"), says("ok"))
		end := s.running(t.Context())
		time.Sleep(24 * time.Hour)
		c.say(approve("d", s.reporter.last().Pending[0].ID, ""))
		if out := end(); out.Reason != task.ReasonFinished || out.Progress.Usage.DurationSeconds > 0 {
			t.Errorf("ended %s after %d s: %s", out.Reason, out.Progress.Usage.DurationSeconds, out.Message)
		}
	})
}

// Each decision has the runner hold anew: whoever decided may decide more.
func TestADecisionPutsTheLeavingOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s := governedRun(c, calls("Bash {}", `Ask {"q":"a"}`))
		s.Durable = true
		began := time.Now()
		end := s.running(t.Context())
		time.Sleep(100 * time.Second)
		c.say(approve("d", s.reporter.last().Pending[0].ID, ""))
		if out := end(); out.Reason != task.ReasonWaiting || time.Since(began) != 220*time.Second || len(out.Progress.Pending) != 1 {
			t.Errorf("ended %s after %s: %+v", out.Reason, time.Since(began), out.Progress.Pending)
		}
	})
}

// A decision that comes while the runner leaves is heard by it or by the next
// attempt, and by one of them only.
func TestADecisionIsNotLostWhileTheRunnerLeaves(t *testing.T) {
	for off := -2; off <= 2; off++ {
		synctest.Test(t, func(t *testing.T) {
			c := newSignals()
			s := governedRun(c, calls("Bash {}"), says("ok"))
			s.Durable = true
			end := s.running(t.Context())
			time.Sleep(approval.DefaultHold + time.Duration(off)*time.Nanosecond)
			c.say(approve("d", requested("s2c1", "Bash", "{}"), ""))
			out := end()
			if out.Reason == task.ReasonWaiting {
				next := s.again(s.Actor.Tools.(enginetest.Toolbox), says("ok"))
				next.withApprovers(c)
				next.Actor.Policy, next.Durable = asksBefore, true
				out = next.run(t)
			}
			if got := s.doneWith("Bash"); out.Reason != task.ReasonFinished || len(got) != 1 {
				t.Errorf("%d ns off: ended %s, made %v", off, out.Reason, got)
			}
		})
	}
}

// What was decided while no runner was there is acted on at once, and no model is
// asked before it is.
func TestADecisionThatIsThereAlreadyIsActedOnAtOnce(t *testing.T) {
	id := requested("s2c1", "Bash", "{}")
	cases := map[string]struct {
		call string
		said task.Decision
		want string
	}{
		"an approval": {"Bash {}", approve("r", id, ""), "Bash{}"},
		"a denial":    {"Bash {}", deny("r", id, "no"), "Denied by ann: no"},
		"an answer":   {`Ask {"q":"a"}`, answers("r.s2c1", "s2c1", "main"), "ann says main"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newSignals()
				s := governedRun(c, calls(tc.call))
				s.Durable = true
				out := s.run(t)
				was := out.Progress.Pending[0]
				time.Sleep(time.Hour)
				next := s.again(s.Actor.Tools.(enginetest.Toolbox), says("ok"))
				next.withApprovers(c)
				next.Actor.Policy, next.Durable = asksBefore, true
				c.say(tc.said)
				began := time.Now()
				out = next.run(t)
				if out.Reason != task.ReasonFinished || time.Since(began) != 0 || len(next.model.asked) != 1 {
					t.Errorf("ended %s after %s, having asked %d times", out.Reason, time.Since(began), len(next.model.asked))
				}
				if got := next.steps(t)[2].Text(); !strings.Contains(got, tc.want) {
					t.Errorf("the model reads %q, want %q", got, tc.want)
				}
				for _, p := range slices.Concat(next.reporter.reported, next.reporter.committed) {
					if len(p.Pending) > 0 && cmp.Diff(was, p.Pending[0]) != "" {
						t.Errorf("asked %+v, then %+v", was, p.Pending[0])
					}
				}
			})
		})
	}
}

// The time to decide counts from when a person was asked first, over all attempts.
func TestARequestExpiresHoweverOftenItIsTakenUp(t *testing.T) {
	cases := map[string]struct {
		call string
		want task.Reason
	}{
		"an approval": {"Bash {}", task.ReasonFinished},
		"a question":  {`Ask {"q":"a"}`, task.ReasonFinished},
		"a limit":     {"Read {}", task.ReasonStepLimit},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newSignals()
				s := governedRun(c, calls(tc.call))
				s.Durable, s.Task.Limits.WaitSeconds = true, 3600
				if tc.want == task.ReasonStepLimit {
					s.Task.Limits.Steps, s.Task.Limits.Ask = 1, true
				}
				began := time.Now()
				attempts := 1
				out := s.run(t)
				was := out.Progress.Pending[0]
				for ; out.Reason == task.ReasonWaiting; attempts++ {
					if p := out.Progress.Pending[0]; cmp.Diff(was, p) != "" {
						t.Errorf("asked %+v, then %+v", was, p)
					}
					time.Sleep(9 * time.Minute)
					s = s.again(s.Actor.Tools.(enginetest.Toolbox), says("ok"))
					s.withApprovers(c)
					s.Actor.Policy, s.Durable = asksBefore, true
					out = s.run(t)
				}
				if took := time.Since(began); out.Reason != tc.want || took != 66*time.Minute || attempts != 7 {
					t.Errorf("ended %s after %s in %d attempts: %s", out.Reason, took, attempts, out.Message)
				}
			})
		})
	}
}

// Grants are in the journal: the next attempt has them, and does not count one
// again that the operator repeats.
func TestAGrantCountsOnceOverAllAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s := governedRun(c, calls("Read {}"), calls("Bash {}"))
		s.Task.Limits = task.Limits{Steps: 1, Ask: true}
		s.Durable = true
		end := s.running(t.Context())
		time.Sleep(time.Second)
		c.say(grant("limit-steps-1", 2))
		if out := end(); out.Reason != task.ReasonWaiting {
			t.Fatalf("ended %s: %s", out.Reason, out.Message)
		}
		for range 3 {
			next := s.again(s.Actor.Tools.(enginetest.Toolbox))
			next.withApprovers(c)
			next.Durable, next.Actor.Policy = true, asksBefore
			if out := next.run(t); out.Reason != task.ReasonWaiting || len(out.Progress.Decided) != 1 {
				t.Fatalf("ended %s: %s", out.Reason, out.Message)
			}
			r := newRun(next.Config)
			if err := r.load(); err != nil || r.meter.Limits().Steps != 3 {
				t.Errorf("the limit is %d (%v), want 3", r.meter.Limits().Steps, err)
			}
			r.endLifetime()
		}
	})
}

// A message does not answer what is to be approved: it waits, and one that names
// the request is refused.
func TestAMessageApprovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals(message("m", "do it"))
		s := governedRun(c, calls("Bash {}"), says("ok"))
		s.Actor.Model.Model = bySession{1, `Bash {"n":1}`}
		end := s.running(t.Context())
		time.Sleep(time.Second)
		id := requested("s3c1", "Bash", s.reporter.last().Pending[0].Args)
		c.say(message("n", "yes, do it"))
		c.say(task.Decision{Name: "o", Request: id, Type: task.DecisionMessage, Value: "yes"})
		time.Sleep(time.Minute)
		c.say(deny("d", id, ""))
		want := []task.Decided{
			{Name: "m"},
			{Name: "o", Request: id, Refused: fmt.Sprintf(approval.RefusedCall, id)},
			{Name: "d", Request: id, Digest: digest.Call("Bash", json.RawMessage(`{"at":0}`))},
			{Name: "n"},
		}
		if diff := cmp.Diff(want, end().Progress.Decided, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Digest" }, cmp.Ignore()), typeless); diff != "" {
			t.Errorf("decided -want +got:\n%s", diff)
		}
		if got := s.steps(t); got[len(got)-2].Note != step.NoteMessage || len(s.doneWith("Bash")) > 0 {
			t.Errorf("the session is\n%s", transcriptOf(got))
		}
	})
}
