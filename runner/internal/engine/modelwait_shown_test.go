package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// What the status and the log show of a wait.
func TestAWaitForAModelIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestRun(nil, loading, limitedFor(2*time.Hour), says("ok"))
		end := s.running(t.Context())
		since := time.Now().UTC()
		want := &task.ModelWait{Model: "m", Since: since.Format(time.RFC3339), NextTryAt: since.Add(30 * time.Second).Format(time.RFC3339), Message: "the model endpoint is unavailable (HTTP 503): Loading model"}
		show := func() {
			t.Helper()
			if p := s.reporter.last(); p.State != approval.StateModel || cmp.Diff(want, p.ModelWait) != "" {
				t.Errorf("the state is %q, the wait -want +got:\n%s", p.State, cmp.Diff(want, p.ModelWait))
			}
		}
		time.Sleep(time.Second)
		show()
		time.Sleep(time.Minute)
		want.NextTryAt, want.Promised, want.Message = since.Add(2*time.Hour+30*time.Second).Format(time.RFC3339), true, "the model provider is rate limiting (retry after 2h0m0s): slow down"
		show()
		if out := end(); out.Reason != task.ReasonFinished {
			t.Errorf("ended %s: %s", out.Reason, out.Message)
		}
		if p := s.reporter.last(); p.ModelWait != nil || p.State != "" {
			t.Errorf("in the end the state is %q, the wait %+v", p.State, p.ModelWait)
		}
		wantLog := []string{
			"Waiting for Model m since 00:00:00 UTC, next try 00:00:30 UTC: the model endpoint is unavailable (HTTP 503): Loading model",
			"Waiting for Model m since 00:00:00 UTC, next try 02:00:30 UTC: the model provider is rate limiting (retry after 2h0m0s): slow down",
			"Model m has begun to answer after an outage of 2h0m30s",
		}
		if diff := cmp.Diff(wantLog, s.stateMessages()); diff != "" {
			t.Errorf("the log -want +got:\n%s", diff)
		}
	})
}

// The first part of an answer ends the outage, in status and log, however long the rest takes. An
// answer that is cut begins it again.
func TestAWaitForAModelEndsWithTheFirstPartOfItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestRun(nil)
		s.Actor.Model.Model = slowOutage{new(int)}
		end := s.running(t.Context())
		started := time.Now()
		for p := s.reporter.last(); p.State == "" && time.Since(started) < time.Hour; p = s.reporter.last() {
			time.Sleep(time.Second)
		}
		for p := s.reporter.last(); p.State == approval.StateModel && time.Since(started) < time.Hour; p = s.reporter.last() {
			time.Sleep(time.Second)
		}
		// Four tries of 20 s, after each a wait, and 20 s until the fifth answer begins; the outage began
		// with the first failure.
		const outage = (3*20+30+60+120+240)*time.Second + 20*time.Second
		if p := s.reporter.last(); p.State != "" || p.ModelWait != nil || time.Since(started).Round(5*time.Second) != outage+20*time.Second {
			t.Errorf("after %s the state is %q, the wait %+v", time.Since(started), p.State, p.ModelWait)
		}
		if got, want := s.stateMessages()[len(s.stateMessages())-1], "Model m has begun to answer after an outage of "+outage.String(); got != want {
			t.Errorf("the log says %q, want %q", got, want)
		}
		if out := end(); out.Reason != task.ReasonFinished || len(s.stateMessages()) != 5 {
			t.Errorf("ended %s: %s, after %q", out.Reason, out.Message, s.stateMessages())
		}
	})
}

// stateMessages are the messages of the events that say what the runner does.
func (tr *testRun) stateMessages() (all []string) {
	tr.sink.mu.Lock()
	defer tr.sink.mu.Unlock()
	for i, e := range tr.sink.all {
		if _, ok := e.(events.StateChanged); ok {
			all = append(all, tr.sink.messages[i])
		}
	}
	return all
}

// By hand no status shows that the Run waits, so the log says so each minute.
func TestAWaitForAModelIsRepeatedInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestRun(nil, limitedFor(3*time.Minute+time.Second), says("ok"))
		s.Remind = time.Minute
		s.run(t)
		if got := s.stateMessages(); len(got) != 5 || got[0] != got[3] {
			t.Errorf("the log has %q", got)
		}
	})
}
