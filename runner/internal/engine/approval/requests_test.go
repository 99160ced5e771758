package approval

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

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestMatchOfADecision(t *testing.T) {
	sum := digest.Call("Bash", json.RawMessage(`{}`))
	other := digest.Call("Bash", json.RawMessage(`{"n":2}`))
	bound := RequestID("s2c1", 0, sum)
	limit := meter.Reached(step.Meter{Steps: 30}, task.Limits{Steps: 30})
	approvals := func(s *fakeSession) []*Request {
		return []*Request{s.approvalOf("s2c1", `{}`), s.approvalOf("s2c2", `{"n":2}`)}
	}
	question := func(s *fakeSession) []*Request { return []*Request{s.question("s2c1")} }
	number := func(s *fakeSession) []*Request {
		q := s.question("s2c1")
		q.Check = func(answer string) error {
			if answer != "1" {
				return errors.New("not a number")
			}
			return nil
		}
		return []*Request{q}
	}
	cases := map[string]struct {
		open     func(*fakeSession) []*Request
		decision task.Decision
		decided  string // the request
		refused  string
	}{
		"approved by request and digest":       {approvals, task.Decision{Type: task.DecisionApprove, Request: bound, Digest: sum}, bound, ""},
		"approved by digest alone":             {approvals, task.Decision{Type: task.DecisionApprove, Digest: sum}, bound, ""},
		"approved by an id with its digest":    {approvals, task.Decision{Type: task.DecisionApprove, Request: bound}, bound, ""},
		"approved with the digest of another":  {approvals, task.Decision{Type: task.DecisionApprove, Request: bound, Digest: other}, "", RefusedDigest},
		"approved without a name":              {approvals, task.Decision{Type: task.DecisionApprove}, "", RefusedAmbiguous},
		"denied without a digest":              {approvals, task.Decision{Type: task.DecisionDeny, Request: bound}, bound, ""},
		"denied with the digest of another":    {approvals, task.Decision{Type: task.DecisionDeny, Request: bound, Digest: other}, "", RefusedDigest},
		"an answer to an approval":             {approvals, task.Decision{Type: task.DecisionAnswer, Request: bound, Value: "yes"}, "", fmt.Sprintf(RefusedCall, bound)},
		"a message to an approval":             {approvals, task.Decision{Type: task.DecisionMessage, Request: bound, Value: "yes"}, "", fmt.Sprintf(RefusedCall, bound)},
		"stale: the request is over":           {approvals, task.Decision{Type: task.DecisionApprove, Request: "s1c1-0000", Digest: sum}, "", fmt.Sprintf(RefusedUnknown, "s1c1-0000")},
		"early: its call may still ask":        {question, task.Decision{Type: task.DecisionApprove, Request: RequestID("s2c2", 0, other), Digest: other}, "", ""},
		"an approval when a question is asked": {question, task.Decision{Type: task.DecisionApprove, Digest: sum}, "", RefusedNone},
		"an answer":                            {question, task.Decision{Type: task.DecisionAnswer, Request: "s2c1", Value: "this"}, "s2c1", ""},
		"an answer to the only question":       {question, task.Decision{Type: task.DecisionAnswer, Value: "this"}, "s2c1", ""},
		"an approval of a question":            {question, task.Decision{Type: task.DecisionApprove, Request: "s2c1"}, "", fmt.Sprintf(RefusedKind, "s2c1", task.PendingQuestion, task.DecisionApprove)},
		"an answer that does not fit":          {number, task.Decision{Type: task.DecisionAnswer, Value: "many"}, "", fmt.Sprintf(RefusedInvalid, "not a number")},
		"an answer that is too large":          {number, task.Decision{Type: task.DecisionAnswer, Value: strings.Repeat("1", maxValue+1)}, "", "the answer does not fit: it has 262145 bytes; at most 262144 are read"},
		"a grant of nothing": {func(s *fakeSession) []*Request {
			return []*Request{{Session: s, Reason: ForGrant, Limit: limit, Pending: task.Pending{ID: "limit-steps-30", Kind: task.PendingLimit}}}
		}, task.Decision{Type: task.DecisionGrant, Tokens: 5}, "", fmt.Sprintf(RefusedNoGrant, "steps")},
		"a grant": {func(s *fakeSession) []*Request {
			return []*Request{{Session: s, Reason: ForGrant, Limit: limit, Pending: task.Pending{ID: "limit-steps-30", Kind: task.PendingLimit}}}
		}, task.Decision{Type: task.DecisionGrant, Steps: 5}, "limit-steps-30", ""},
		"an unknown type": {question, task.Decision{Type: "Maybe", Request: "s2c1"}, "", fmt.Sprintf(RefusedType, "Maybe")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSession(t)
				r := New(s.config)
				ctx, cancel := context.WithCancel(t.Context())
				waits := s.await(ctx, r, tc.open(s)...)
				tc.decision.Name = "d"
				s.Decide(tc.decision)
				synctest.Wait()
				if got := strings.Join(decided(waits), " "); got != tc.decided {
					t.Errorf("decided %q, want %q", got, tc.decided)
				}
				if got := strings.Join(s.refused, "; "); got != tc.refused {
					t.Errorf("refused because %q, want %q", got, tc.refused)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

// Two users decide on one request: the first counts. The other is left open as long as its
// call may ask again, and refused after that.
func TestOfTwoDecisionsTheFirstCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(t)
		r := New(s.config)
		q := s.approvalOf("s2c1", `{}`)
		waits := s.await(t.Context(), r, q)
		s.Decide(
			task.Decision{Name: "a", By: "ann", Type: task.DecisionApprove, Request: q.ID, Digest: q.Digest},
			task.Decision{Name: "b", By: "bob", Type: task.DecisionDeny, Request: q.ID, Digest: q.Digest},
		)
		synctest.Wait()
		if w := waits[0]; !w.decided || w.decision.By != "ann" || w.decision.Type != task.DecisionApprove {
			t.Fatalf("decision %+v, want the approval of ann", w.decision)
		}
		if len(s.refused) > 0 {
			t.Errorf("refused because %q before the call has its result", s.refused)
		}
		result := &step.Step{Seq: 3, Role: step.RoleTool, CallID: "s2c1"}
		if err := s.Record(journal.Record{Kind: journal.KindResult, Step: result}); err != nil {
			t.Fatal(err)
		}
		now, _ := s.Signals.Current()
		if _, err := r.ApplyDecisions(s, now.Decisions); err != nil {
			t.Fatalf("ApplyDecisions: %v", err)
		}
		if diff := cmp.Diff([]string{fmt.Sprintf(RefusedUnknown, q.ID)}, s.refused); diff != "" {
			t.Errorf("refused -want +got:\n%s", diff)
		}
		if _, err := r.ApplyDecisions(s, now.Decisions); err != nil || len(s.refused) != 1 {
			t.Errorf("the same decisions are acted on twice: %q, %v", s.refused, err)
		}
	})
}

// Two branches of the work ask the same: one request is shown, and both are answered.
func TestOneRequestForTwoBranches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(t)
		r := New(s.config)
		waits := s.await(t.Context(), r, s.approvalOf("s2c1", `{}`), s.approvalOf("s2c1", `{}`))
		if shown := r.Pending(); len(shown) != 1 {
			t.Errorf("%d requests are shown, want 1", len(shown))
		}
		s.Decide(task.Decision{Name: "d", Type: task.DecisionDeny, Reason: "no", Request: waits[0].request.ID})
		synctest.Wait()
		for i, w := range waits {
			if !w.decided || w.decision.Reason != "no" {
				t.Errorf("branch %d has the decision %+v, want the denial", i, w.decision)
			}
		}
	})
}

// An approval for the rest of the Run ends the other requests of its rule, which then ask
// their policy again.
func TestApprovalForTheRestOfTheRunEndsOtherRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(t)
		r := New(s.config)
		once, other := s.approvalOf("s2c2", `{"n":2}`), s.approvalOf("s2c2", `{"n":3}`)
		once.Once, other.Source.Rule = true, "writes"
		ctx, cancel := context.WithCancel(t.Context())
		waits := s.await(ctx, r, s.approvalOf("s2c1", `{}`), s.approvalOf("s2c2", `{}`), once, other)
		approved := waits[0].request
		s.Decide(task.Decision{Name: "d", Type: task.DecisionApprove, Scope: task.ScopeRun, Request: approved.ID, Digest: approved.Digest})
		synctest.Wait()
		var over []bool
		for _, w := range waits {
			over = append(over, w.over)
		}
		if diff := cmp.Diff([]bool{true, true, false, false}, over); diff != "" {
			t.Errorf("requests that are over -want +got:\n%s", diff)
		}
		cancel()
		synctest.Wait()
	})
}

// What a rule asks about each call cannot be approved for more than this call.
func TestOnceIsNotApprovedForTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(t)
		r := New(s.config)
		q := s.approvalOf("s2c1", `{}`)
		q.Once = true
		waits := s.await(t.Context(), r, q)
		s.Decide(task.Decision{Name: "d", Type: task.DecisionApprove, Scope: task.ScopeRun, Request: q.ID, Digest: q.Digest})
		synctest.Wait()
		if !waits[0].decided || waits[0].decision.Scope != "" {
			t.Errorf("decision %+v, want an approval without a scope", waits[0].decision)
		}
		s.Store.View(func(now *state.Run) {
			if now.Released(q.Source) {
				t.Error("the rule is approved for the rest of the Run")
			}
		})
	})
}

func TestARequestExpires(t *testing.T) {
	cases := map[string]struct {
		since time.Duration // before now, when an earlier attempt asked
		after time.Duration
	}{
		"asked now":                   {0, time.Hour},
		"asked by an earlier attempt": {40 * time.Minute, 20 * time.Minute},
		"expired meanwhile":           {2 * time.Hour, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSession(t)
				r := New(s.config)
				q := s.approvalOf("s2c1", `{}`)
				q.Since = time.Now().Add(-tc.since)
				began := time.Now()
				s.activity.Enter()
				_, decided, err := r.Await(t.Context(), q)
				if decided || err != nil {
					t.Errorf("Await returns decided %v, error %v; want neither", decided, err)
				}
				if took := time.Since(began); took != tc.after {
					t.Errorf("the request expires after %s, want %s", took, tc.after)
				}
				if diff := cmp.Diff([]string{RefusedLate}, s.refused); diff != "" {
					t.Errorf("events -want +got:\n%s", diff)
				}
				if shown := r.Pending(); len(shown) > 0 {
					t.Errorf("it is still shown: %v", shown)
				}
			})
		})
	}
}

// A decision that cannot be recorded has no effect: the error ends the wait.
func TestADecisionThatIsNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(t)
		r := New(s.config)
		q := s.approvalOf("s2c1", `{}`)
		waits := s.await(t.Context(), r, q)
		full := errors.New("the disk is full")
		s.Refuse = map[journal.Kind]error{journal.KindDecide: full}
		s.Decide(task.Decision{Name: "d", Type: task.DecisionApprove, Request: q.ID, Digest: q.Digest})
		synctest.Wait()
		if w := waits[0]; !errors.Is(w.err, full) || w.decided {
			t.Errorf("Await returns decided %v, error %v; want the failure alone", w.decided, w.err)
		}
	})
}

func TestWithoutApproversNothingIsAsked(t *testing.T) {
	s := newSession(t)
	s.config.CanAsk = false
	r := New(s.config)
	if _, decided, err := r.Await(t.Context(), s.approvalOf("s2c1", `{}`)); decided || err != nil {
		t.Errorf("Await returns decided %v, error %v; want neither", decided, err)
	}
}

// How child Runs end reaches the calls that wait for them, and no others.
func TestEndOfAChildRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(t)
		r := New(s.config)
		ctx, cancel := context.WithCancel(t.Context())
		waits := s.await(ctx, r, s.childRun("s2c1"), s.question("s2c2"))
		s.Signals.Update(func(now *signals.Signals) {
			now.Children = []task.Child{
				{Request: "s9c9", Run: "unknown"},
				{Request: "s2c2", Run: "not a child"},
				{Request: "s2c1", Run: "run-child", Reason: task.ReasonFinished, Output: `{"ok":true}`},
			}
		})
		synctest.Wait()
		if !waits[0].over || waits[1].over {
			t.Errorf("over are %v and %v, want the call of the child Run alone", waits[0].over, waits[1].over)
		}
		want := map[string]journal.Child{"s2c1": {Request: "s2c1", Run: "run-child", Reason: "Finished", Output: `{"ok":true}`}}
		got := s.Store.Session("").Children
		for id, c := range got {
			c.Usage = step.Usage{}
			got[id] = c
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("child Runs -want +got:\n%s", diff)
		}
		cancel()
		synctest.Wait()
	})
}
