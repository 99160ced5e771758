package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func grant(request string, steps int64) task.Decision {
	return task.Decision{Name: "r." + request, By: "ann", Request: request, Type: task.DecisionGrant, Steps: steps}
}

func TestAReachedLimitIsRaisedAsOftenAsItIsReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s := runWithQuestions(c, calls(`Read {"n":1}`), calls(`Read {"n":2}`), calls(`Read {"n":3}`), says("ok"))
		s.Task.Limits = task.Limits{Steps: 1, Ask: true, DurationSeconds: 60}
		end := s.running(t.Context())
		synctest.Wait()
		p := s.reporter.last()
		if p.State != "AwaitingAnswer" || len(p.Pending) != 1 || p.Pending[0].ID != "limit-steps-1" || p.Pending[0].Kind != task.PendingLimit ||
			p.Pending[0].DisplayDigest != loggedRequest(t, s).ComputeDisplayDigest() {
			t.Fatalf("told %+v", p)
		}
		time.Sleep(time.Hour)
		c.say(task.Decision{Name: "little", Request: "limit-steps-1", Type: task.DecisionGrant, Tokens: 5})
		c.say(grant("limit-steps-1", 1))
		synctest.Wait()
		c.say(grant("limit-steps-2", 2))
		out := end()
		if out.Reason != task.ReasonFinished || out.Progress.Usage.DurationSeconds != 0 {
			t.Errorf("ended %s after %d s: %s", out.Reason, out.Progress.Usage.DurationSeconds, out.Message)
		}
		want := []task.Decided{
			{Name: "little", Request: "limit-steps-1", Refused: fmt.Sprintf(approval.RefusedNoGrant, "steps")},
			{Name: "r.limit-steps-1", Request: "limit-steps-1"},
			{Name: "r.limit-steps-2", Request: "limit-steps-2"},
		}
		if diff := cmp.Diff(want, out.Progress.Decided, typeless); diff != "" {
			t.Errorf("decided -want +got:\n%s", diff)
		}
		// The next attempt knows what was granted.
		r := newRun(s.again(enginetest.Toolbox{askTool()}).Config)
		defer r.endLifetime()
		if err := r.load(); err != nil || r.meter.Limits().Steps != 4 {
			t.Errorf("the limit is %d after a resume (%v), want 4", r.meter.Limits().Steps, err)
		}
	})
}

func TestALimitIsRaisedForWhicheverBranchReachedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s := runWithQuestions(c, calls(`agent {"agent":"b"}`, `agent {"agent":"c"}`), says("ok"))
		s.Actor.Tools = enginetest.Toolbox{agentTool()}
		s.Actors = fakeAgents{"b": fakeAgent("b", nil, says("b")), "c": fakeAgent("c", nil, says("c"))}.actors
		s.Task.Limits = task.Limits{Steps: 1, Ask: true, Depth: 1}
		end := s.running(t.Context())
		synctest.Wait()
		if p := s.reporter.last(); len(p.Pending) != 1 {
			t.Fatalf("two branches ask %+v", p.Pending)
		}
		c.say(grant("limit-steps-1", 9))
		if out := end(); out.Reason != task.ReasonFinished {
			t.Errorf("ended %s: %s", out.Reason, out.Message)
		}
	})
}

func TestALimitEndsTheRunWhereNobodyRaisesIt(t *testing.T) {
	cases := map[string]struct {
		limits task.Limits
		used   task.Meter
		want   task.Reason
	}{
		"in time":             {task.Limits{Steps: 1, Ask: true, WaitSeconds: 60}, task.Meter{Steps: 1}, task.ReasonStepLimit},
		"because nobody may":  {task.Limits{Steps: 1, Ask: true, DurationSeconds: 60}, task.Meter{DurationSeconds: 60}, task.ReasonDurationLimit},
		"because nobody asks": {task.Limits{Steps: 1}, task.Meter{Steps: 1}, task.ReasonStepLimit},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := runWithQuestions(newSignals(), says("never"))
				s.Task.Limits, s.Task.Meter = tc.limits, tc.used
				if out := s.run(t); out.Reason != tc.want {
					t.Errorf("ended %s: %s", out.Reason, out.Message)
				}
			})
		})
	}
}
