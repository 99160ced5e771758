package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/facts"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A fakeModel is a model that says what it is told to, turn by turn, and keeps
// what it was asked. Past its end it fails.
type fakeModel struct {
	mu    sync.Mutex
	turns []turn
	asked []*model.Request
	at    int
}

type turn struct {
	text   string
	calls  []model.Call
	finish step.Finish
	reason string // of the provider, if it is unclear
	lacks  string // what the request does not have
	usage  step.Usage
	err    error
	// during runs while the answer is on its way.
	during func(context.Context) error
}

func says(text string) turn { return turn{text: text, finish: step.FinishStop} }

// calls is a turn of calls, each written as "Name args".
func calls(written ...string) turn {
	t := turn{finish: step.FinishCalls}
	for _, w := range written {
		name, args, _ := strings.Cut(w, " ")
		t.calls = append(t.calls, model.Call{Name: name, Args: args})
	}
	return t
}

func fails(err error) turn { return turn{err: err} }

func (s *fakeModel) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		t := s.next(req)
		if t.during != nil {
			t.err = t.during(ctx)
		}
		if t.err != nil {
			yield(model.Delta{}, t.err)
			return
		}
		for _, d := range t.deltas() {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// next is the turn that answers a request.
func (s *fakeModel) next(req *model.Request) turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := *req
	kept.Steps = append([]step.Step(nil), req.Steps...)
	s.asked = append(s.asked, &kept)
	if s.at == len(s.turns) {
		return fails(fmt.Errorf("the script has only %d turns", s.at))
	}
	s.at++
	return s.turns[s.at-1]
}

func (t turn) deltas() []model.Delta {
	all := []model.Delta{{Warning: t.lacks}}
	for i := range len(t.text) {
		all = append(all, model.Delta{Text: t.text[i : i+1]})
	}
	for i, c := range t.calls {
		all = append(all, model.Delta{Call: &model.CallDelta{Index: i, Name: c.Name, Args: c.Args}})
	}
	usage := t.usage
	if usage == (step.Usage{}) {
		usage = step.Usage{InputTokens: 10, OutputTokens: 5, CostMicroUSD: 100, Priced: true}
	}
	return append(all, model.Delta{Usage: &usage, Finish: t.finish, UnclearReason: t.reason})
}

func newTool(name string, effect tool.Effect, call func(context.Context, tool.Call) (tool.Result, error)) tool.Tool {
	return tool.Tool{Spec: tool.Spec{Name: name, Effect: effect, Concurrency: tool.Parallel}, Call: call}
}

// echo answers with its arguments.
func echo(name string, effect tool.Effect) tool.Tool {
	return newTool(name, effect, func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.Result{Text: name + string(c.Args)}, nil
	})
}

func ending(name string) tool.Tool {
	t := newTool(name, tool.ReadOnly, func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.Result{Text: "ended", Output: c.Args}, nil
	})
	t.Internal = facts.Facts{Ends: true}.Internal()
	return t
}

// A fakeToolbox of fakeTools. Arguments that are no JSON object are kept as a string and
// fit no schema.
type fakeToolbox []tool.Tool

func (b fakeToolbox) Specs() []step.Tool {
	specs := make([]step.Tool, len(b))
	for i, t := range b {
		specs[i] = step.Tool{Name: t.Name, Description: t.Description, Input: t.Input}
	}
	return specs
}

func (b fakeToolbox) Find(name string) (tool.Tool, bool) {
	for _, t := range b {
		if t.Name == name {
			return t, true
		}
	}
	return tool.Tool{}, false
}

func (fakeToolbox) Read(_, raw string) json.RawMessage {
	if raw == "" {
		return json.RawMessage("{}")
	}
	if json.Valid([]byte(raw)) {
		return json.RawMessage(raw)
	}
	quoted, _ := json.Marshal(raw)
	return quoted
}

func (fakeToolbox) Check(_ string, args json.RawMessage) *tool.Error {
	if args[0] != '{' {
		return &tool.Error{Message: "the arguments are not valid JSON"}
	}
	return nil
}

// A fakeReporter is a Reporter that keeps what it is told.
type fakeReporter struct {
	mu        sync.Mutex
	committed []task.Progress
	reported  []task.Progress
	latest    task.Progress // of both
	refuse    error
	begins    []error // what Begin returns while nothing is accepted; empty: refuse, and all is accepted
}

func (d *fakeReporter) Accepted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.begins) == 0
}

func (d *fakeReporter) Report(now func() task.Progress) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.latest = now()
	d.reported = append(d.reported, d.latest)
}

func (d *fakeReporter) Begin(_ context.Context, now func() task.Progress) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.latest = now()
	d.reported = append(d.reported, d.latest)
	if len(d.begins) > 0 {
		err := d.begins[0]
		d.begins = d.begins[1:]
		return err
	}
	return d.refuse
}

func (d *fakeReporter) Commit(_ context.Context, now func() task.Progress) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.latest = now()
	d.committed = append(d.committed, d.latest)
	return d.refuse
}

// A fakeSink is a Sink that keeps what it hears, as types.
type fakeSink struct {
	mu       sync.Mutex
	types    []step.EventType
	all      []events.Payload
	messages []string
	scopes   []step.Scope
}

func (t *fakeSink) Emit(scope step.Scope, message string, p events.Payload) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.messages, t.scopes = append(t.messages, message), append(t.scopes, scope)
	t.types = append(t.types, p.EventType())
	t.all = append(t.all, p)
}

// A testRun is everything around a session under test.
type testRun struct {
	Config
	model    *fakeModel
	reporter *fakeReporter
	sink     *fakeSink
	journal  *journal.Memory
	signals  *fakeSignals
}

func newTestRun(tools fakeToolbox, turns ...turn) *testRun {
	s := &testRun{model: &fakeModel{turns: turns}, reporter: &fakeReporter{}, sink: &fakeSink{}, journal: &journal.Memory{}, signals: newSignals()}
	s.Config = Config{
		Task: task.Task{Version: 1, Attempt: 1, Prompt: "go", Run: task.Run{UID: "uid"}, Limits: task.Limits{Steps: 30}},
		Actor: Actor{
			Agent: task.Agent{Name: "a", Instructions: "be brief", ParallelTools: 4},
			Model: Model{Model: s.model, Name: "m"},
			Tools: tools,
		},
		Journal: s.journal, Events: s.sink, Report: s.reporter,
		Signals: s.signals, Now: time.Now,
	}
	return s
}

func (s *testRun) run(t *testing.T) Outcome {
	t.Helper()
	return Run(t.Context(), s.Config)
}

// again is a testRun on which the next attempt takes up the session.
func (s *testRun) again(tools fakeToolbox, turns ...turn) *testRun {
	next := newTestRun(tools, turns...)
	next.journal, next.Journal = s.journal, s.journal
	next.Task, next.Actor.Agent = s.Task, s.Actor.Agent
	return next
}

// state is the Run's own session as it was recorded.
func (s *testRun) state(t *testing.T) *state.Session {
	t.Helper()
	b, err := state.Replay(s.journal.Read())
	if err != nil {
		t.Fatalf("Replay: %v", err)
	}
	return b.Session("")
}

// steps is the session as it was recorded.
func (s *testRun) steps(t *testing.T) []step.Step {
	t.Helper()
	return s.state(t).Steps
}

// transcript is the session in words: who said what.
func (s *testRun) transcript(t *testing.T) string {
	t.Helper()
	return transcriptOf(s.steps(t))
}

func transcriptOf(steps []step.Step) string {
	var lines []string
	for _, st := range steps {
		line := string(st.Role) + ": " + st.Text()
		for _, c := range st.Calls {
			line += " " + c.Name + string(c.Args)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func sessionOf(steps ...step.Step) state.Session { return state.Session{Steps: steps} }

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// byLength is a model that goes by how far the session has come.
type byLength struct{}

func (byLength) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	said := 0
	for _, s := range req.Steps {
		if s.Seq == 1 || s.Role != step.RoleUser {
			said++
		}
	}
	return (&fakeModel{turns: []turn{conversation(said)}}).Stream(ctx, req)
}

// bySession is a model that calls the same so many times, then is done. It goes
// by the session, so that it does not notice a resume.
type bySession []any

func (m bySession) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	asked := 0
	for _, s := range req.Steps {
		if s.Role == step.RoleAssistant {
			asked++
		}
	}
	t := says("done")
	if asked < m[0].(int) {
		var written []string
		for _, w := range m[1:] {
			written = append(written, strings.Replace(w.(string), "}", fmt.Sprintf(`,"at":%d}`, asked), 1))
		}
		t = calls(written...)
	}
	return (&fakeModel{turns: []turn{t}}).Stream(ctx, req)
}

func sorted(all []string) []string {
	slices.Sort(all)
	return all
}

// redacting knows one secret, the canary.
func redacting() *redact.Redactor {
	return redact.New(redact.Secret{Name: "s", Key: "k", Value: []byte(canary)})
}
