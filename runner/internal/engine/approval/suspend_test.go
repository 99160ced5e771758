package approval

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A runner leaves once all of its work has waited for Hold, if another attempt resumes it.
func TestSuspension(t *testing.T) {
	const hold = 5 * time.Minute
	forever := time.Hour // the request expires
	cases := map[string]struct {
		change func(*fakeSession)
		after  time.Duration
		left   task.Reason // empty: it stays
		state  string
	}{
		"everything waits":                 {func(*fakeSession) {}, hold, task.ReasonWaiting, StateApproval},
		"another branch works":             {func(s *fakeSession) { s.activity.Enter() }, forever, "", ""},
		"a command runs in the background": {func(s *fakeSession) { s.config.Busy = func() bool { return true } }, forever, "", ""},
		"the journal ends with the pod":    {func(s *fakeSession) { s.config.Durable = false }, forever, "", ""},
		"the Run is paused":                {func(s *fakeSession) { s.Signals.Update(func(now *signals.Signals) { now.Paused = true }) }, 0, task.ReasonPaused, StatePaused},
		"the pod is shut down":             {func(s *fakeSession) { s.Signals.Update(func(now *signals.Signals) { now.Interrupted = true }) }, 0, task.ReasonInterrupted, ""},
		"a command ends after a while": {func(s *fakeSession) {
			end := time.Now().Add(7 * time.Minute)
			s.config.Busy = func() bool { return time.Now().Before(end) }
		}, 7 * time.Minute, task.ReasonWaiting, StateApproval},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSession(t)
				s.config.Durable, s.config.Hold = true, hold
				tc.change(s)
				r := New(s.config)
				began := time.Now()
				s.activity.Enter()
				_, decided, err := r.Await(t.Context(), s.approvalOf("s2c1", `{}`))
				s.activity.Leave()
				if took := time.Since(began); took != tc.after {
					t.Errorf("the wait ends after %s, want %s", took, tc.after)
				}
				if decided || Leaves(err) != (tc.left != "") {
					t.Errorf("Await returns decided %v, error %v; want that the runner leaves: %v", decided, err, tc.left != "")
				}
				if got := reasonOf(r.Leaving()); got != tc.left {
					t.Errorf("the runner leaves with reason %q, want %q", got, tc.left)
				}
				if got := r.State(); got != tc.state {
					t.Errorf("state %q, want %q", got, tc.state)
				}
			})
		})
	}
}

// To ask whether the runner leaves changes nothing; to leave for a pause lasts, though the pause ends.
func TestLeavingIsAQuery(t *testing.T) {
	s := newSession(t)
	s.config.Durable = true
	r := New(s.config)
	pause := func(paused bool) { s.Signals.Update(func(now *signals.Signals) { now.Paused = paused }) }
	pause(true)
	if got := reasonOf(r.Leaving()); got != task.ReasonPaused {
		t.Errorf("a paused runner leaves with reason %q", got)
	}
	pause(false)
	if got := r.Leaving(); got != nil {
		t.Errorf("the question alone makes the runner leave: %v", got)
	}
	pause(true)
	_ = r.Leave()
	pause(false)
	if got := reasonOf(r.Leaving()); got != task.ReasonPaused {
		t.Errorf("a runner that left stays, with reason %q", got)
	}
}

func reasonOf(end *task.EndError) task.Reason {
	if end == nil {
		return ""
	}
	return end.Reason
}

// After the runner has decided to leave, a Decision is for the next attempt; the request
// stays in the status.
func TestADecisionAfterTheSuspensionIsLeftForTheNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(t)
		s.config.Durable, s.config.Hold = true, time.Minute
		r := New(s.config)
		waits := s.await(t.Context(), r, s.approvalOf("s2c1", `{}`))
		<-r.leaving
		synctest.Wait()
		if !Leaves(waits[0].err) {
			t.Fatalf("Await returns %v, want that the runner leaves", waits[0].err)
		}
		q := waits[0].request
		said := []task.Decision{{Name: "d", Type: task.DecisionApprove, Request: q.ID, Digest: q.Digest}}
		if _, err := r.ApplyDecisions(s, said); err != nil {
			t.Fatal(err)
		}
		if now := s.Store.Session(""); len(now.Answers) > 0 {
			t.Errorf("the decision is recorded: %v", now.Answers)
		}
		if shown := r.Pending(); len(shown) != 1 {
			t.Errorf("%d requests are shown, want 1", len(shown))
		}

		next := New(s.config)
		again := s.await(t.Context(), next, s.approvalOf("s2c1", `{}`))
		s.Decide(said...)
		synctest.Wait()
		if !again[0].decided {
			t.Error("the next attempt does not act on the decision")
		}
	})
}

// A Decision on one request of several begins the hold anew.
func TestADecisionBeginsTheHoldAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(t)
		s.config.Durable, s.config.Hold = true, 10*time.Minute
		r := New(s.config)
		began := time.Now()
		waits := s.await(t.Context(), r, s.approvalOf("s2c1", `{}`), s.approvalOf("s2c2", `{"n":2}`))
		<-time.After(9 * time.Minute)
		first := waits[0].request
		s.Decide(task.Decision{Name: "d", Type: task.DecisionDeny, Request: first.ID})
		<-r.leaving
		if took := time.Since(began); took != 19*time.Minute {
			t.Errorf("the runner leaves after %s, want 10m0s after the decision", took)
		}
		synctest.Wait()
	})
}
