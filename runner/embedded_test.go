package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A scriptedModel gives its answers in order, and the last one again and again.
type scriptedModel struct {
	answers [][]model.Delta
	asked   atomic.Int64
	read    func(*model.Request) // nil: requests are not read
}

// Stream implements [model.Model].
func (s *scriptedModel) Stream(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	n := int(s.asked.Add(1))
	if s.read != nil {
		s.read(r)
	}
	return func(yield func(model.Delta, error) bool) {
		for _, d := range s.answers[min(n, len(s.answers))-1] {
			if !yield(d, ctx.Err()) {
				return
			}
		}
	}
}

func saysText(text string) []model.Delta {
	return []model.Delta{{Text: text}, {Finish: step.FinishStop, Usage: &step.Usage{InputTokens: 10, OutputTokens: 5}}}
}

func callsTool(name, args string) []model.Delta {
	return []model.Delta{{Call: &model.CallDelta{Name: name, Args: args}}, {Finish: step.FinishCalls, Usage: &step.Usage{InputTokens: 10, OutputTokens: 5}}}
}

// scripted returns an Agent whose model gives these answers, and its options.
func scripted(answers ...[]model.Delta) (Agent, *scriptedModel, Option) {
	m := &scriptedModel{answers: answers}
	return Agent{Model: task.Model{Provider: "Custom", Driver: "scripted", Model: "m"}}, m,
		WithModel("scripted", func(context.Context, registry.ModelSpec) (model.Model, error) { return m, nil })
}

type upperIn struct {
	Text string `json:"text"`
}

// upper is a tool that answers in upper case.
func upper(context.Context, registry.ToolSpec) ([]tool.Tool, error) {
	return []tool.Tool{tool.Typed(tool.Spec{Name: "Upper", Effect: tool.ReadOnly}, func(_ context.Context, _ tool.Call, in upperIn) (tool.Result, error) {
		return tool.Result{Text: strings.ToUpper(in.Text)}, nil
	})}, nil
}

func reasonOf(err error) task.Reason {
	if end, ok := errors.AsType[*task.EndError](err); ok {
		return end.Reason
	}
	return ""
}

func TestAnEmbeddedAgentAnswers(t *testing.T) {
	agent, _, answers := scripted(callsTool("Upper", `{"text":"hello"}`), saysText("It says HELLO."))
	run := New(agent, answers, WithTool("Upper", upper)).Run(t.Context(), "Say hello.")
	var called, text string
	var last events.Payload
	for e := range run.Events() {
		switch p := e.Payload.(type) {
		case events.CallFinished:
			called = p.Name
		case events.TextDelta:
			text += p.Text
		}
		last = e.Payload
	}
	result, err := run.Result()
	if err != nil || result.Text != "It says HELLO." || result.Counts.ToolCalls != 1 || result.Usage.InputTokens != 20 {
		t.Errorf("Result() = %+v, %v", result, err)
	}
	if finished, ok := last.(events.RunFinished); !ok || finished.Reason != task.ReasonFinished || called != "Upper" || text != "It says HELLO." {
		t.Errorf("called %q, text %q, last %+v", called, text, last)
	}
	for range run.Events() {
		t.Error("the events are yielded twice")
	}
}

func TestAnEmbeddedAgentWritesFiles(t *testing.T) {
	agent, _, answers := scripted(callsTool("Write", `{"path":"notes/a.txt","content":"hello"}`), saysText("done"))
	agent.Tools, agent.Workspace = []task.Tool{{Builtin: "Files"}}, filepath.Join(t.TempDir(), "new")
	result, err := New(agent, answers).Run(t.Context(), "Write it.").Result()
	if err != nil || len(result.Files) != 1 || result.Files[0].Path != "/workspace/notes/a.txt" {
		t.Errorf("Result() = %+v, %v", result, err)
	}
	if data, err := os.ReadFile(filepath.Join(agent.Workspace, "notes", "a.txt")); err != nil || string(data) != "hello" {
		t.Errorf("the file has %q, %v", data, err)
	}
}

// A program has no status that bounds the result, and its directory is its own.
func TestAnEmbeddedAgentReturnsAllOfItsResult(t *testing.T) {
	const files = 2 * task.MaxFiles
	long := strings.Repeat("long ", task.MaxText)
	answers := make([][]model.Delta, 0, files+1)
	for i := range files {
		answers = append(answers, callsTool("Write", fmt.Sprintf(`{"path":"%s/%d.txt","content":"x"}`, strings.Repeat("deep/", task.MaxPath/5), i)))
	}
	agent, _, option := scripted(append(answers, saysText(long))...)
	agent.Tools, agent.Workspace, agent.Limits.Steps = []task.Tool{{Builtin: "Files"}}, t.TempDir(), files+1
	result, err := New(agent, option).Run(t.Context(), "Write them.").Result()
	if err != nil || result.Text != long || len(result.Files) != files {
		t.Errorf("Result() has %d bytes of text and %d files, %v; want %d and %d", len(result.Text), len(result.Files), err, len(long), files)
	}
	if inside, err := os.ReadDir(agent.Workspace); err != nil || len(inside) != 1 {
		t.Errorf("the directory of the program has %v, %v; want what the agent wrote", inside, err)
	}
}

func TestAnEmbeddedAgentReturnsItsOutput(t *testing.T) {
	agent, _, answers := scripted(callsTool("Finish", `{"n":7}`))
	agent.OutputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	result, err := New(agent, answers).Run(t.Context(), "Count.").Result()
	if err != nil || string(result.Output) != `{"n":7}` {
		t.Errorf("Result() = %+v, %v", result, err)
	}
}

func TestAnEmbeddedAgentThatDoesNotFinish(t *testing.T) {
	failing := func(context.Context, registry.ModelSpec) (model.Model, error) {
		return nil, errors.New("no such deployment; choose another")
	}
	cases := map[string]struct {
		change  func(*Agent)
		prompt  string
		options []Option
		reason  task.Reason
		want    string
	}{
		"a limit":                    {func(a *Agent) { a.Limits.Steps = 2 }, "go", []Option{WithTool("Upper", upper)}, task.ReasonStepLimit, "2 of 2 steps"},
		"no prompt":                  {nil, "", nil, task.ReasonMisconfigured, "the prompt is empty: say what the agent should do"},
		"no model":                   {func(a *Agent) { a.Model = task.Model{} }, "go", nil, task.ReasonMisconfigured, "Agent.Model has no Provider: set it"},
		"no name of the model":       {func(a *Agent) { a.Model = task.Model{Provider: "OpenAI"} }, "go", nil, task.ReasonMisconfigured, "Agent.Model has no Model: set the name"},
		"a driver that is not there": {func(a *Agent) { a.Model.Driver = "other" }, "go", nil, task.ReasonMisconfigured, `Agent.Model names the Driver "other", but New has no WithModel of that name`},
		"a tool that is not there":   {func(a *Agent) { a.Tools = []task.Tool{{Custom: "Upper"}} }, "go", nil, task.ReasonMisconfigured, `Agent.Tools[0] names the custom tool "Upper", but New has no WithTool of that name`},
		"a key that is not there":    {func(a *Agent) { a.Key = func() (string, error) { return "", errors.New("KEY is not set") } }, "go", nil, task.ReasonMisconfigured, "reading the key of the model with Agent.Key: KEY is not set"},
		"a model that fails to be made": {
			func(a *Agent) { a.Model.Driver = "failing" }, "go",
			[]Option{WithModel("failing", failing)},
			task.ReasonMisconfigured, "no such deployment; choose another",
		},
		"an option twice":            {nil, "go", []Option{{}, WithTool("Upper", upper), WithTool("Upper", upper)}, task.ReasonMisconfigured, `runner.WithTool("Upper") is used twice; rename one`},
		"a directory that is a file": {func(a *Agent) { a.State = os.Args[0] }, "go", nil, task.ReasonMisconfigured, "making the directories of the agent: mkdir"},
		"commands without a sandbox": {func(a *Agent) { a.Tools = []task.Tool{{Builtin: "Shell"}} }, "go", nil, task.ReasonMisconfigured, "Agent.Tools[0]: Shell needs a sandbox, which an agent of a Go program does not have"},
		"a limit that cannot be":     {func(a *Agent) { a.Limits.Tokens = -1 }, "go", nil, task.ReasonMisconfigured, "limits.tokens is -1"},
		"a tool that does not exist": {func(a *Agent) { a.Tools = []task.Tool{{Builtin: "Sea"}} }, "go", nil, task.ReasonMisconfigured, `this runner has no builtin "Sea"`},
		"another agent":              {func(a *Agent) { a.Tools = []task.Tool{{Agent: "x"}} }, "go", nil, task.ReasonMisconfigured, "set Builtin or Custom"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			agent, m, answers := scripted(callsTool("Upper", `{"text":"a"}`))
			if tc.change != nil {
				tc.change(&agent)
			}
			run := New(agent, append(tc.options, answers)...).Run(t.Context(), tc.prompt)
			for range run.Events() {
			}
			_, err := run.Result()
			if reasonOf(err) != tc.reason || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Result() = %v, want %s: … %s", err, tc.reason, tc.want)
			}
			if tc.reason == task.ReasonMisconfigured && m.asked.Load() != 0 {
				t.Error("the model was asked")
			}
		})
	}
}

// A call that needs an approval is not made: there are no approvers.
func TestAnEmbeddedAgentHasNoApprovers(t *testing.T) {
	agent, _, answers := scripted(callsTool("Upper", `{"text":"a"}`), saysText("refused"))
	agent.Tools = []task.Tool{{Custom: "Upper", Approval: &task.Approval{}}}
	run := New(agent, answers, WithTool("Upper", upper)).Run(t.Context(), "go")
	denied := false
	for e := range run.Events() {
		if _, ok := e.Payload.(events.CallDenied); ok {
			denied = true
		}
	}
	if result, err := run.Result(); err != nil || result.Text != "refused" || !denied {
		t.Errorf("Result() = %+v, %v; denied %v", result, err, denied)
	}
}

// waiting returns a tool that ends a context and waits for its own.
func waiting(end context.CancelCauseFunc, cause error) Option {
	return WithTool("Upper", func(context.Context, registry.ToolSpec) ([]tool.Tool, error) {
		return []tool.Tool{tool.Typed(tool.Spec{Name: "Upper", Effect: tool.ReadOnly}, func(ctx context.Context, _ tool.Call, _ upperIn) (tool.Result, error) {
			end(cause)
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		})}, nil
	})
}

func TestAnEmbeddedAgentContinuesAfterItsContextEnded(t *testing.T) {
	cause := errors.New("the server shuts down")
	agent, m, answers := scripted(callsTool("Upper", `{"text":"a"}`), saysText("A"))
	agent.State = t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := New(agent, answers, waiting(cancel, cause)).Run(ctx, "go").Result()
	const want = "Interrupted: the context of the Run ended: the server shuts down. A Run with the same prompt and the same Agent.State continues it"
	if !errors.Is(err, cause) || err.Error() != want || m.asked.Load() != 1 {
		t.Fatalf("Result() = %v, want %s", err, want)
	}
	again := New(agent, answers, WithTool("Upper", upper))
	for range 2 { // the second time nothing is left to do
		result, err := again.Run(t.Context(), "go").Result()
		if err != nil || result.Text != "A" || m.asked.Load() != 2 {
			t.Errorf("Result() = %+v, %v, after %d questions", result, err, m.asked.Load())
		}
	}
	elsewhere, _, answersElsewhere := scripted(saysText("A"))
	elsewhere.State = t.TempDir()
	if _, err := New(elsewhere, answersElsewhere, WithTool("Upper", upper)).Run(t.Context(), "go").Result(); err != nil {
		t.Fatal(err)
	}
	if one, two := journal.Owner(agent.State), journal.Owner(elsewhere.State); one == two || one == "" {
		t.Errorf("two Runs with the same prompt have the UIDs %q and %q, by which servers recognize repeated requests", one, two)
	}
	_, err = again.Run(t.Context(), "something else").Result()
	agent.OutputSchema = []byte(`{"type":"object"}`)
	_, changed := New(agent, answers, WithTool("Upper", upper)).Run(t.Context(), "go").Result()
	for what, err := range map[string]error{"prompt": err, "Agent": changed} {
		if want := fmt.Sprintf("Misconfigured: The directory %s has the journal of another prompt or agent. Set Agent.State to another directory", agent.State); err == nil || err.Error() != want {
			t.Errorf("Result() of another %s = %v, want %s", what, err, want)
		}
	}
}

// What tools hold is closed once at the end, the last first, also if the context ended.
func TestAnEmbeddedAgentClosesItsTools(t *testing.T) {
	for name, isCancelled := range map[string]bool{"at the end": false, "when the context ends": true} {
		t.Run(name, func(t *testing.T) {
			var closed []string
			holds := func(name string) tool.Tool {
				made := tool.Typed(tool.Spec{Name: name}, func(context.Context, tool.Call, upperIn) (tool.Result, error) { return tool.Result{}, nil })
				made.Closer = tool.CloseFunc(func() error { closed = append(closed, name); return nil })
				return made
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			agent, _, answers := scripted(saysText("done"))
			upper := WithTool("Upper", upper)
			if isCancelled {
				agent, _, answers = scripted(callsTool("Upper", `{"text":"a"}`))
				upper = waiting(cancel, errors.New("a restart"))
			}
			_, err := New(agent, answers, upper,
				WithLayer(func(context.Context, registry.LayerSpec) (middleware.Layer, error) {
					return middleware.Layer{Name: "l", Tools: []tool.Tool{holds("first"), holds("second")}}, nil
				}),
				WithTool("Third", func(context.Context, registry.ToolSpec) ([]tool.Tool, error) { return []tool.Tool{holds("third")}, nil }),
			).Run(ctx, "go").Result()
			if want := "third second first"; (err != nil) != isCancelled || strings.Join(closed, " ") != want {
				t.Errorf("Result() = %v, closed %v, want %s", err, closed, want)
			}
		})
	}
}

// The files of a Run are kept with its journal, which says that they were written.
func TestAnEmbeddedAgentContinuesWithItsFiles(t *testing.T) {
	agent, _, answers := scripted(callsTool("Write", `{"path":"/workspace/a.txt","content":"kept"}`), callsTool("Upper", `{"text":"a"}`), saysText("done"))
	agent.State, agent.Tools = t.TempDir(), []task.Tool{{Builtin: "Files"}, {Custom: "Upper"}}
	ctx, cancel := context.WithCancelCause(t.Context())
	if _, err := New(agent, answers, waiting(cancel, errors.New("a restart"))).Run(ctx, "go").Result(); err == nil {
		t.Fatal("it was not interrupted")
	}
	for range 2 { // the second time nothing is left to do
		result, err := New(agent, answers, WithTool("Upper", upper)).Run(t.Context(), "go").Result()
		if err != nil || len(result.Files) != 1 {
			t.Errorf("Result() = %+v, %v", result, err)
		}
		if got, err := os.ReadFile(filepath.Join(agent.State, "files", "a.txt")); err != nil || string(got) != "kept" {
			t.Errorf("the file has %q: %v", got, err)
		}
	}
}

// A silentModel never answers.
type silentModel struct{ end context.CancelCauseFunc }

// Stream implements [model.Model].
func (s silentModel) Stream(ctx context.Context, _ *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		s.end(errors.New("the user left"))
		<-ctx.Done()
		yield(model.Delta{}, ctx.Err())
	}
}

func TestTheEndOfTheContextCutsAnAnswer(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	silent := WithModel("silent", func(context.Context, registry.ModelSpec) (model.Model, error) { return silentModel{cancel}, nil })
	run := New(Agent{Model: task.Model{Provider: "Custom", Driver: "silent", Model: "m"}}, silent).Run(ctx, "go")
	var last events.Payload
	for e := range run.Events() {
		last = e.Payload
	}
	_, err := run.Result()
	const want = "Interrupted: the context of the Run ended: the user left. Set Agent.State to continue such a Run later"
	if err == nil || err.Error() != want {
		t.Errorf("Result() = %v, want %s", err, want)
	}
	if finished, ok := last.(events.RunFinished); !ok || finished.Reason != task.ReasonInterrupted {
		t.Errorf("the last event is %+v", last)
	}
}

func TestARunWhoseContextEndedBeforeItDoesNothing(t *testing.T) {
	agent, m, answers := scripted(saysText("A"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	run := New(agent, answers).Run(ctx, "go")
	for range run.Events() {
		t.Error("there are events")
	}
	_, err := run.Result()
	if !errors.Is(err, context.Canceled) || m.asked.Load() != 0 {
		t.Errorf("Result() = %v", err)
	}
}

func TestEmbeddedRunsLeaveNothingBehindAndMayBeMadeAtTheSameTime(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	agent, _, answers := scripted(saysText("done"))
	e := New(agent, answers)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			run := e.Run(t.Context(), fmt.Sprint("go ", i))
			for range run.Events() {
				break // the Run goes on
			}
			if result, err := run.Result(); err != nil || result.Text != "done" {
				t.Errorf("Result() = %+v, %v", result, err)
			}
		})
	}
	all.Wait()
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// The key is in no file of the Run, although the model says it.
func TestTheKeyOfAnEmbeddedAgentIsRedacted(t *testing.T) {
	const key = "sk-very-secret-key"
	agent, _, answers := scripted(saysText("the key is " + key))
	agent.State, agent.Key = t.TempDir(), func() (string, error) { return key, nil }
	given := ""
	withKey := WithModel("keyed", func(_ context.Context, s registry.ModelSpec) (m model.Model, err error) {
		given, err = s.Key()
		return &scriptedModel{answers: [][]model.Delta{saysText("the key is " + key)}}, err
	})
	agent.Model.Driver = "keyed"
	result, err := New(agent, answers, withKey).Run(t.Context(), "go").Result()
	if err != nil || given != key || strings.Contains(result.Text, key) {
		t.Errorf("Result() = %+v, %v; the model got the key %q", result, err, given)
	}
	files, err := filepath.Glob(filepath.Join(agent.State, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the state has %v, %v", files, err)
	}
	if slices.ContainsFunc(files, func(f string) bool { data, _ := os.ReadFile(f); return strings.Contains(string(data), key) }) {
		t.Error("the key is in the state")
	}
}

// What a program passes is text, also where it looks like an expression of an Agent object.
func TestTextsOfAnEmbeddedAgentHaveNoExpressions(t *testing.T) {
	const instructions, prompt = "Write $${{ input.x }} and ${{ input.prompt }}.", "Explain ${{ secrets.TOKEN }"
	agent, answers, option := scripted(saysText("done"))
	var system, first string
	answers.read = func(r *model.Request) { system, first = r.System, r.Steps[0].Text() }
	agent.Instructions = instructions
	if _, err := New(agent, option).Run(t.Context(), prompt).Result(); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(system, instructions) || !strings.Contains(first, prompt) {
		t.Errorf("the model reads the instructions %q and the prompt %q", system, first)
	}
}

// The next Run of a program names the Run before it.
func TestARunHoldsItsDirectoryWithItsProcess(t *testing.T) {
	agent, _, option := scripted(callsTool("Upper", `{"text":"a"}`), saysText("done"))
	agent.State = t.TempDir()
	var second error
	_, err := New(agent, option, WithTool("Upper", func(ctx context.Context, s registry.ToolSpec) ([]tool.Tool, error) {
		_, second = New(agent, option, WithTool("Upper", upper)).Run(ctx, "go").Result()
		return upper(ctx, s)
	})).Run(t.Context(), "go").Result()
	if err != nil || second == nil || !strings.Contains(second.Error(), ": this process)") {
		t.Errorf("the first ends with %v, the second with %v", err, second)
	}
}
