package approval

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A fakeSession implements the port of the package on a journal in memory. The last turn
// of its session has two calls, s2c1 and s2c2. It also is all else that Requests need.
type fakeSession struct {
	*enginetest.Session
	activity *Activity
	config   Config
	reached  *meter.Limit
	granted  []journal.Decision

	mu      sync.Mutex
	refused []string // of decisions, as events say
}

func newSession(t *testing.T) *fakeSession {
	t.Helper()
	clock := meter.NewClock(time.Now, time.Time{})
	s := &fakeSession{Session: enginetest.NewSession(), activity: NewActivity(clock, time.Now)}
	s.config = Config{
		Signals: s.Signals, State: s.Store, Activity: s.activity, Now: time.Now, CanAsk: true, CanStartRuns: true, MaxWait: time.Hour,
		Reached: func() *meter.Limit { return s.reached }, Grant: func(d journal.Decision) { s.granted = append(s.granted, d) },
		Report: func() {}, ReportNow: func() {}, ReportedState: func() string { return "" },
	}
	if err := s.AddTurn(step.FinishCalls, "Bash {}", "Bash {}"); err != nil {
		t.Fatal(err)
	}
	return s
}

// Emit implements [Session].
func (s *fakeSession) Emit(_ string, p events.Payload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d, is := p.(events.Decided); is && d.Refused != "" {
		s.refused = append(s.refused, d.Refused)
	}
}

// approvalOf returns a request for the approval of a call of Bash.
func (s *fakeSession) approvalOf(call, args string) *Request {
	sum := digest.Call("Bash", json.RawMessage(args))
	return &Request{
		Session: s, Reason: ForApproval, Source: journal.Source{Agent: "scout", Rule: "commands", Tool: "Bash"},
		Pending: task.Pending{ID: RequestID(call, 0, sum), Kind: task.PendingApproval, Tool: "Bash", Args: args, Digest: sum},
	}
}

// question returns a question that a call asks.
func (s *fakeSession) question(call string) *Request {
	return &Request{Session: s, Reason: ForAnswer, Pending: task.Pending{ID: call, Kind: task.PendingQuestion, Question: "Which?"}}
}

// childRun returns a request for a child Run.
func (s *fakeSession) childRun(call string) *Request {
	return &Request{Session: s, Reason: ForChild, Pending: task.Pending{ID: call, Kind: task.PendingDelegation, Agent: "child", Args: "{}"}}
}

// A waiting is a request that a call waits for, and what came of it.
type waiting struct {
	request  *Request
	decision journal.Decision
	decided  bool
	err      error
	over     bool
}

// await has a call wait for each request, and returns once all of them do.
func (s *fakeSession) await(ctx context.Context, r *Requests, all ...*Request) []*waiting {
	var waits []*waiting
	for _, q := range all {
		w := &waiting{request: q}
		waits = append(waits, w)
		s.activity.Enter()
		go func() {
			defer s.activity.Leave()
			w.decision, w.decided, w.err = r.Await(ctx, q)
			w.over = true
		}()
	}
	synctest.Wait()
	return waits
}

// decided returns the ids of the requests that were decided.
func decided(waits []*waiting) []string {
	var ids []string
	for _, w := range waits {
		if w.over && w.decided {
			ids = append(ids, w.request.ID)
		}
	}
	return ids
}
