package engine

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A runner whose journal outlives it leaves a long wait to another one, which knows since
// when the model is unavailable.
func TestALongWaitForAModelNeedsNoRunner(t *testing.T) {
	const settled = approval.SettleDelay
	cases := map[string]struct {
		turns []turn
		left  []time.Duration // when each runner leaves, from its start
		next  time.Duration   // of the try that the first leaves for, from the start
		want  task.Reason
	}{
		"until a time that the provider named": {[]turn{limitedFor(2 * time.Hour), says("ok")}, []time.Duration{settled}, 2 * time.Hour, task.ReasonFinished},
		"not until a time that is near":        {[]turn{limitedFor(9 * time.Minute), says("ok")}, nil, 0, task.ReasonFinished},
		"of an outage, after ten minutes": {
			append(repeat(7, away), says("ok")), []time.Duration{10 * time.Minute, settled, settled}, 12*time.Minute + 30*time.Second, task.ReasonFinished,
		},
		"which is one outage over all runners": {
			repeat(99, away), []time.Duration{10 * time.Minute, settled, settled, settled, settled}, 12*time.Minute + 30*time.Second, task.ReasonModelUnavailable,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestRun(nil, tc.turns...)
				s.Durable = true
				started := time.Now()
				for i, left := range tc.left {
					w := s.leavesWait(t, left)
					if w.Since != started.UTC().Format(time.RFC3339) || i == 0 && w.NextTryAt != started.Add(tc.next).UTC().Format(time.RFC3339) {
						t.Fatalf("runner %d leaves the wait %+v", i, w)
					}
					s = s.again(nil, s.model.turns[s.model.at:]...)
					s.Durable = true
				}
				if out := s.run(t); out.Reason != tc.want || tc.want == task.ReasonModelUnavailable && time.Since(started) < 30*time.Minute {
					t.Errorf("ended %s after %s: %s", out.Reason, time.Since(started), out.Message)
				}
			})
		})
	}
}

// leavesWait runs a runner that leaves a wait for a model after a while, and returns that wait
// at the time of the next try.
func (tr *testRun) leavesWait(t *testing.T, after time.Duration) *task.ModelWait {
	t.Helper()
	began := time.Now()
	out := tr.run(t)
	w := out.Progress.ModelWait
	if took := time.Since(began); out.Reason != task.ReasonWaiting || took != after || out.Progress.State != approval.StateModel || w == nil {
		t.Fatalf("ended %s after %s in state %q, wait %+v: %s", out.Reason, took, out.Progress.State, w, out.Message)
	}
	next, err := time.Parse(time.RFC3339, w.NextTryAt)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(next))
	return w
}

// A runner that died while it waited has not begun the outage anew.
func TestADisruptedWaitKeepsItsBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestRun(nil, repeat(9, away)...)
		end := s.running(t.Context())
		time.Sleep(20 * time.Minute)
		s.sigterm()
		if out := end(); out.Reason != task.ReasonInterrupted {
			t.Fatalf("ended %s: %s", out.Reason, out.Message)
		}
		time.Sleep(11 * time.Minute)
		next := s.again(nil, away)
		if out := next.run(t); out.Reason != task.ReasonModelUnavailable || !strings.Contains(out.Message, "since 00:00:00 UTC") {
			t.Errorf("ended %s: %s", out.Reason, out.Message)
		}
	})
}

// The next attempt waits from its first request on, so that the status does not say in
// between that the model is back.
func TestAWaitForAModelIsShownFromTheFirstRequestOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestRun(nil, limitedFor(time.Hour))
		s.Durable = true
		since := s.leavesWait(t, approval.SettleDelay).Since
		next := s.again(nil)
		next.Actor.Model.Model = slowOutage{new(int)}
		end := next.running(t.Context())
		time.Sleep(time.Second)
		if p := next.reporter.last(); p.State != approval.StateModel || p.ModelWait == nil || p.ModelWait.Since != since {
			t.Errorf("state %q, wait %+v", p.State, p.ModelWait)
		}
		if out := end(); out.Reason != task.ReasonFinished {
			t.Errorf("ended %s: %s", out.Reason, out.Message)
		}
	})
}
