package toolcall_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// newTool returns a tool that answers with a text.
func newTool(name string, effect tool.Effect, changes ...func(*tool.Spec)) tool.Tool {
	made := tool.Tool{
		Spec: tool.Spec{Name: name, Effect: effect, Concurrency: tool.Parallel},
		Call: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Text: name + " done"}, nil },
	}
	for _, change := range changes {
		change(&made.Spec)
	}
	return made
}

// doing returns a tool that does something else.
func doing(t tool.Tool, call func(ctx context.Context, c tool.Call) (tool.Result, error)) tool.Tool {
	t.Call = call
	return t
}

// A fakePolicy gives one answer.
type fakePolicy func(c step.Call) toolcall.PolicyResult

func (f fakePolicy) Decide(_ context.Context, c step.Call, _ step.Scope) toolcall.PolicyResult {
	return f(c)
}

// A fakeSession implements the ports of a Runner on a journal in memory, and keeps the
// order in which things happen.
type fakeSession struct {
	*enginetest.Session
	account *meter.Account
	config  toolcall.Config
	options toolcall.Options

	mu      sync.Mutex
	events  []string
	emitted []events.Payload
}

var (
	_ toolcall.Session = (*fakeSession)(nil)
	_ toolcall.Records = (*fakeSession)(nil)
)

// newSession returns a session whose last turn has calls, each written as "Tool args".
func newSession(t *testing.T, tools []tool.Tool, calls ...string) *fakeSession {
	t.Helper()
	clock := meter.NewClock(time.Now, time.Time{})
	s := &fakeSession{Session: enginetest.NewSession(), account: meter.New(clock, task.Limits{}, step.Meter{})}
	s.Recording = func(k journal.Kind) { s.happened("record " + string(k)) }
	activity := approval.NewActivity(clock, time.Now)
	activity.Enter()
	s.config = toolcall.Config{State: s.Store, Activity: activity, Signals: s.Signals, Now: time.Now, Digest: digest.Call}
	s.setApprovers(true)
	s.options = toolcall.Options{Agent: "scout", Parallel: 4, Tools: enginetest.Toolbox(tools)}
	if err := s.AddTurn(step.FinishCalls, calls...); err != nil {
		t.Fatal(err)
	}
	return s
}

// setApprovers says whether there are approvers. They have a minute to decide.
func (s *fakeSession) setApprovers(there bool) {
	s.config.CanAsk = there
	s.config.Requests = approval.New(approval.Config{
		Signals: s.Signals, State: s.Store, Activity: s.config.Activity, Now: time.Now, MaxWait: time.Minute,
		CanAsk: there, CanStartRuns: s.config.CanStartRuns,
		Reached: func() *meter.Limit { return nil }, Grant: func(journal.Decision) {},
		Report: func() {}, ReportNow: func() {}, ReportedState: func() string { return "" },
	})
}

// setOperator has an operator create child Runs.
func (s *fakeSession) setOperator() {
	s.config.CanStartRuns = true
	s.setApprovers(true)
}

// begin records a call as begun.
func (s *fakeSession) begin(t *testing.T, id, name, args string, effect tool.Effect) {
	t.Helper()
	intent := &journal.Intent{CallID: id, Name: name, Args: json.RawMessage(args), Effect: string(effect)}
	if err := s.Record(journal.Record{Kind: journal.KindIntent, Intent: intent}); err != nil {
		t.Fatal(err)
	}
	s.events = nil
}

// runner returns the Runner under test.
func (s *fakeSession) runner() *toolcall.Runner {
	return toolcall.NewRunner(&s.config, s, s, s.options)
}

// execute executes the open calls.
func (s *fakeSession) execute(ctx context.Context) error {
	s.events = nil
	now := s.Store.Session("")
	return s.runner().Execute(ctx, now.Open())
}

// results are the results of the last turn, in the order of the session, each as
// "call: text".
func (s *fakeSession) results() []string {
	now := s.Store.Session("")
	var all []string
	for _, st := range now.Steps {
		if st.Role == step.RoleTool {
			all = append(all, st.CallID+": "+st.Text())
		}
	}
	for _, c := range now.Steps[len(now.Steps)-1].Calls {
		if st, known := now.Results[c.ID]; known {
			all = append(all, c.ID+": "+st.Text())
		}
	}
	return all
}

// happened adds to the order of what happens.
func (s *fakeSession) happened(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, what)
}

// layer returns a stack of one layer that a call passes through.
func layer(t *testing.T, around func(next middleware.ToolFunc) middleware.ToolFunc) *middleware.Stack {
	t.Helper()
	stack, err := middleware.Build(middleware.Layer{Name: "layer", Tool: around})
	if err != nil {
		t.Fatal(err)
	}
	return stack
}

// SafePoint implements [toolcall.Session].
func (s *fakeSession) SafePoint(context.Context) error {
	s.happened("safe point")
	if left := s.config.Requests.Leave(); left != nil {
		return left
	}
	return nil
}

// Delegate implements [toolcall.Session].
func (*fakeSession) Delegate(context.Context, tool.Delegation) (tool.Result, error) {
	return tool.Result{}, errors.New("the session of the agent failed")
}

// Below implements [toolcall.Session].
func (*fakeSession) Below(string) *toolcall.Runner { return nil }

// BeginEffects implements [toolcall.Status].
func (s *fakeSession) BeginEffects(context.Context) error {
	s.happened("effects")
	return nil
}

// ShowStarted implements [toolcall.Status].
func (s *fakeSession) ShowStarted(step.Call, json.RawMessage) { s.happened("started") }

// ShowDenied implements [toolcall.Status].
func (s *fakeSession) ShowDenied(call step.Call, d toolcall.Denial) {
	s.happened("denied " + call.Name + " by " + d.By + " " + d.Rule)
}

// ShowFinished implements [toolcall.Status].
func (s *fakeSession) ShowFinished(step.Call, step.Step, string) { s.happened("finished") }

// Account implements [toolcall.Records].
func (s *fakeSession) Account() *meter.Account { return s.account }

// Emit implements [approval.Session].
func (s *fakeSession) Emit(_ string, p events.Payload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emitted = append(s.emitted, p)
}
