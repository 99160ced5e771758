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
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
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

func (f *fakeModel) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		t := f.next(req)
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
func (f *fakeModel) next(req *model.Request) turn {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := *req
	kept.Steps = append([]step.Step(nil), req.Steps...)
	f.asked = append(f.asked, &kept)
	if f.at == len(f.turns) {
		return fails(fmt.Errorf("the script has only %d turns", f.at))
	}
	f.at++
	return f.turns[f.at-1]
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
	enginetest.Ends(&t.Spec)
	return t
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

func (f *fakeReporter) Accepted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.begins) == 0
}

func (f *fakeReporter) Report(now func() task.Progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.latest = now()
	f.reported = append(f.reported, f.latest)
}

func (f *fakeReporter) Begin(_ context.Context, now func() task.Progress) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.latest = now()
	f.reported = append(f.reported, f.latest)
	if len(f.begins) > 0 {
		err := f.begins[0]
		f.begins = f.begins[1:]
		return err
	}
	return f.refuse
}

func (f *fakeReporter) Commit(_ context.Context, now func() task.Progress) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.latest = now()
	f.committed = append(f.committed, f.latest)
	return f.refuse
}

// A fakeSink is a Sink that keeps what it hears, as types.
type fakeSink struct {
	mu       sync.Mutex
	types    []step.EventType
	all      []events.Payload
	messages []string
	scopes   []step.Scope
}

func (f *fakeSink) Emit(scope step.Scope, message string, p events.Payload) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.messages, f.scopes = append(f.messages, message), append(f.scopes, scope)
	f.types = append(f.types, p.EventType())
	f.all = append(f.all, p)
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

func newTestRun(tools enginetest.Toolbox, turns ...turn) *testRun {
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

func (tr *testRun) run(t *testing.T) Outcome {
	t.Helper()
	return Run(t.Context(), tr.Config)
}

// again is a testRun on which the next attempt takes up the session.
func (tr *testRun) again(tools enginetest.Toolbox, turns ...turn) *testRun {
	next := newTestRun(tools, turns...)
	next.journal, next.Journal = tr.journal, tr.journal
	next.Task, next.Actor.Agent = tr.Task, tr.Actor.Agent
	return next
}

// state is the Run's own session as it was recorded.
func (tr *testRun) state(t *testing.T) *state.Session {
	t.Helper()
	b, err := state.Replay(tr.journal.Read())
	if err != nil {
		t.Fatalf("Replay: %v", err)
	}
	return b.Session("")
}

// steps is the session as it was recorded.
func (tr *testRun) steps(t *testing.T) []step.Step {
	t.Helper()
	return tr.state(t).Steps
}

// transcript is the session in words: who said what.
func (tr *testRun) transcript(t *testing.T) string {
	t.Helper()
	return transcriptOf(tr.steps(t))
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

func (b bySession) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	asked := 0
	for _, s := range req.Steps {
		if s.Role == step.RoleAssistant {
			asked++
		}
	}
	t := says("done")
	if asked < b[0].(int) {
		var written []string
		for _, w := range b[1:] {
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
