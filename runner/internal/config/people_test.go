package config_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// build makes what follows from parts that were changed.
func build(t *testing.T, change func(*config.Parts)) config.Built {
	t.Helper()
	p := parts(t)
	change(&p)
	built, err := config.NewRegistry().Build(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return built
}

const topics = `{"type":"object","required":["topic"],"properties":{"topic":{"type":"string"},"prompt":{"type":"string"}}}`

func TestInputReachesInstructionsAndPrompt(t *testing.T) {
	cases := map[string]struct {
		prompt, input string
		want          string
	}{
		"a prompt has their values":        {"Write about ${{ input.topic }}.", `{"topic":"tides"}`, "Write about tides."},
		"what they hold is not read again": {"Write about ${{ input.topic }}.", `{"topic":"${{ input.prompt }}"}`, "Write about ${{ input.prompt }}."},
		"an expression":                    {"Write about ${{ input.topic.upperAscii() + input.?prompt.orValue('!') }}.", `{"topic":"tides"}`, "Write about TIDES!."},
		"their prompt is a prompt":         {"", `{"topic":"tides","prompt":"Go."}`, "Go."},
		"without one they are the prompt":  {"", `{"topic":"tides"}`, `{"topic":"tides"}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			built := build(t, func(p *config.Parts) {
				p.Snapshot.Agent.InputSchema = json.RawMessage(topics)
				p.Snapshot.Agent.Instructions = "You know ${{ input.topic }} and ${{ input.topic.reverse() }}."
				p.Task.Prompt, p.Task.Input = tc.prompt, json.RawMessage(tc.input)
			})
			if got := built.Engine.Task.Prompt; got != tc.want {
				t.Errorf("the prompt is %q, want %q", got, tc.want)
			}
			if got := built.Engine.Actor.Agent.Instructions; !strings.HasPrefix(got, "You know ") || strings.Contains(got, "input.topic") {
				t.Errorf("the instructions are %q", got)
			}
		})
	}
}

// A Run need not give a value that has a default.
func TestDefaultsOfInputReachInstructionsAndPrompt(t *testing.T) {
	built := build(t, func(p *config.Parts) {
		p.Snapshot.Agent.InputSchema = json.RawMessage(`{"type":"object","properties":{"topic":{"type":"string","default":"tides"}},"required":["topic"]}`)
		p.Snapshot.Agent.Instructions = "You know ${{ input.topic }}."
		p.Task.Prompt, p.Task.Input = "Write about ${{ input.topic }}.", nil
	})
	if got := built.Engine.Task.Prompt; got != "Write about tides." {
		t.Errorf("the prompt is %q", got)
	}
	if got := built.Engine.Actor.Agent.Instructions; !strings.HasPrefix(got, "You know tides.") {
		t.Errorf("the instructions are %q", got)
	}
}

// An agent without a schema takes a prompt, said either way, and may be given
// more beside it.
func TestThePromptIsAnInputOfAnAgentWithoutASchema(t *testing.T) {
	cases := map[string]struct{ prompt, input, want string }{
		"a prompt":                {"Go.", "", "Do: Go."},
		"a prompt beside input":   {"Go.", `{"color":"red"}`, "Do: Go."},
		"a prompt as a parameter": {"", `{"prompt":"Go."}`, "Do: Go."},
		"both":                    {"Go.", `{"prompt":"Run."}`, "Do: Run."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			built := build(t, func(p *config.Parts) {
				p.Snapshot.Agent.Instructions = "Do: ${{ input.prompt }}"
				p.Task.Prompt, p.Task.Input = tc.prompt, json.RawMessage(tc.input)
			})
			if got := built.Engine.Actor.Agent.Instructions; !strings.HasPrefix(got, tc.want) {
				t.Errorf("the instructions are %q, want %q", got, tc.want)
			}
		})
	}
}

func TestInputThatDoesNotFitIsReportedWithItsPath(t *testing.T) {
	p := parts(t)
	p.Snapshot.Agent.InputSchema = json.RawMessage(topics)
	p.Task.Input = json.RawMessage(`{"topic":7}`)
	_, err := config.NewRegistry().Build(t.Context(), p)
	if got := misconfigured(err); !strings.Contains(got, "the input of Agent fixer") || !strings.Contains(got, "topic") {
		t.Errorf("Build() = %v", err)
	}
}

func TestTextsThatHaveNoValueAreReportedWithTheCause(t *testing.T) {
	for name, tc := range map[string]struct{ instructions, prompt, want string }{
		"a path without a value":      {"", "On ${{ input.prompt }}.", "The prompt of the Run: column 8: input.prompt has no value: write input.?prompt.orValue('')"},
		"an expression that fails":    {"", "${{ input.topic.split(',')[1] }}", `The prompt of the Run: column 5 of "input.topic.split(',')[1]": the list has no item 1`},
		"instructions that fail":      {"${{ 1 / size(input.topic.substring(5)) }}", "Go.", `The instructions of Agent fixer: column 5 of "1 / size(input.topic.substring(5))": division by zero`},
		"what nobody checked":         {"${{ input.topc.trim() }}", "Go.", "The instructions of Agent fixer: column 11: there is no field topc; input has prompt, topic; did you mean topic?"},
		"instructions without a path": {"Known: ${{ input.prompt }}", "Go.", "The instructions of Agent fixer: column 12: input.prompt has no value"},
	} {
		t.Run(name, func(t *testing.T) {
			p := parts(t)
			p.Snapshot.Agent.InputSchema = json.RawMessage(topics)
			p.Snapshot.Agent.Instructions = tc.instructions
			p.Task.Prompt, p.Task.Input = tc.prompt, json.RawMessage(`{"topic":"tides"}`)
			_, err := config.NewRegistry().Build(t.Context(), p)
			if got := misconfigured(err); !strings.HasPrefix(got, tc.want) {
				t.Errorf("Build() = %v, want %s", err, tc.want)
			}
		})
	}
}

// The agents of a Run are made when they are called; what is wrong with one is
// known before anything is paid for.
func TestEveryAgentIsTriedBeforeTheWorkBegins(t *testing.T) {
	p := parts(t)
	p.Snapshot.Agents = []task.Agent{{Name: "reviewer", Models: []string{"gone"}}}
	_, err := config.NewRegistry().Build(t.Context(), p)
	if got := misconfigured(err); !strings.Contains(got, `Agent reviewer: its Model "gone" is not among those of the Run`) {
		t.Errorf("Build() = %v", err)
	}
}

func TestAnAgentIsMadeForTheCallThatOpensIt(t *testing.T) {
	built := build(t, func(p *config.Parts) {
		cheap := p.Snapshot.Models[0]
		cheap.Name = "cheap"
		p.Snapshot.Models = append(p.Snapshot.Models, cheap)
		p.Snapshot.Agent.Tools = []task.Tool{{Builtin: "Task"}, {Agent: "reviewer", Name: "review"}, {Builtin: "Files"}}
		p.Snapshot.Agent.Routes = map[string][]string{task.RouteSubagent: {"cheap"}}
		p.Snapshot.Agents = []task.Agent{{
			Name: "reviewer", Instructions: "You review ${{ input.topic }}.", InputSchema: json.RawMessage(topics), Tools: []task.Tool{{Builtin: "Files"}},
		}}
	})
	reviewer, err := built.Engine.Actors(engine.Delegation{Delegation: tool.Delegation{Call: "s2c1", Agent: "reviewer", Input: json.RawMessage(`{"topic":"tides"}`)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := built.Engine.Actors(engine.Delegation{Delegation: tool.Delegation{Call: "s2c3", Agent: "reviewer", Input: json.RawMessage(`{}`)}}); err == nil ||
		err.Error() != "Misconfigured: The instructions of Agent reviewer: column 16: input.topic has no value: write input.?topic.orValue('')" {
		t.Errorf("without a value: %v", err)
	}
	if got := reviewer.Agent.Instructions; !strings.HasPrefix(got, "You review tides.\n") || reviewer.Model.Name != "m" {
		t.Errorf("its instructions are %q, its Model %s", got, reviewer.Model.Name)
	}
	if _, ok := built.Engine.Actor.Tools.Find("review"); !ok {
		t.Error("there is no tool review")
	}
	if fresh, _ := built.Engine.Actor.Tools.Find("task"); !strings.Contains(fresh.Description, "- reviewer\n  input: "+topics) {
		t.Errorf("a fresh session may be of:\n%s", fresh.Description)
	}
	own, err := built.Engine.Actors(engine.Delegation{Own: true, Delegation: tool.Delegation{Call: "s2c2", Agent: "fixer", Prompt: "go"}})
	if err != nil || own.Model.Name != "cheap" {
		t.Errorf("a fresh session of the same agent is answered by %v, %v", own, err)
	}
	if own.Tools == built.Engine.Actor.Tools {
		t.Error("two sessions share what they know of files")
	}
}

// An agent that works in a child Run is a tool of what its entry says. No session
// here is made of it, though an agent of its name may work in the pod too.
func TestAnAgentInAChildRunIsATool(t *testing.T) {
	built := build(t, func(p *config.Parts) {
		p.Snapshot.Agent.Tools = []task.Tool{
			{Builtin: "Task"},
			{Agent: "lead"},
			{Agent: "reviewer", Mode: task.ModeRun, Name: "review", Description: "Reviews a change.", InputSchema: json.RawMessage(topics), TimeoutSeconds: 5},
			{Agent: "fixer", Mode: task.ModeRun},
		}
		p.Snapshot.Agents = []task.Agent{{Name: "lead", Tools: []task.Tool{{Agent: "reviewer"}}}, {Name: "reviewer"}}
	})
	review, ok := built.Engine.Actor.Tools.Find("review")
	if !ok {
		t.Fatal("there is no tool review")
	}
	spec := review.Spec
	if !strings.HasPrefix(spec.Description, "Reviews a change.\n\nIt works in a Run of its own") || string(spec.Input) != topics || spec.Timeout != tool.Unbounded || spec.Effect != tool.Resumable {
		t.Errorf("Spec() = %+v", spec)
	}
	if _, ok := built.Engine.Actor.Tools.Find("fixer"); !ok {
		t.Error("an agent cannot call its own kind")
	}
	fresh, _ := built.Engine.Actor.Tools.Find("task")
	if got := fresh.Description; strings.Contains(got, "- reviewer") || !strings.Contains(got, "- lead") {
		t.Errorf("a fresh session may be of:\n%s", got)
	}
}

func TestAnAgentInAChildRunThatCannotBeATool(t *testing.T) {
	for want, entry := range map[string]task.Tool{
		"input schema of the agent reviewer": {Agent: "reviewer", Mode: task.ModeRun, InputSchema: json.RawMessage(`{"type":"string"}`)},
		"give it a shorter name":             {Agent: strings.Repeat("r", 200), Mode: task.ModeRun, Name: "review"},
	} {
		p := parts(t)
		p.Snapshot.Agent.Tools = []task.Tool{entry}
		_, err := config.NewRegistry().Build(t.Context(), p)
		if got := misconfigured(err); !strings.Contains(got, want) {
			t.Errorf("Build() = %v, want %q", err, want)
		}
	}
}

func TestTheWorkspaceSaysHowWorkIsDoneThere(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte("Use tabs."), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, ignore := range map[string]bool{"it is read": false, "it is ignored": true} {
		t.Run(name, func(t *testing.T) {
			built := build(t, func(p *config.Parts) {
				p.Workspace = at(t, dir)
				p.Snapshot.Agent.IgnoreInstructions = ignore
			})
			if ignore {
				if built.Engine.BuildPrompt != nil {
					t.Error("it is read all the same")
				}
				return
			}
			if got := built.Engine.BuildPrompt(t.Context(), "go", nothingDenied); !strings.HasPrefix(got, "go\n") || !strings.Contains(got, "Use tabs.") {
				t.Errorf("the first that the agent is told is %q", got)
			}
		})
	}
}

func nothingDenied(context.Context, string, json.RawMessage) bool { return true }

func TestPlacesForFiles(t *testing.T) {
	state := t.TempDir()
	built := build(t, func(p *config.Parts) {
		p.State = state
		p.Snapshot.Agent.Tools = []task.Tool{{Builtin: "Files"}}
	})
	for _, at := range []string{"/workspace/a", "/tmp/a", "/memories/a"} {
		if got := calls(t, built, "Write", `{"path":"`+at+`","content":"x"}`); strings.HasPrefix(got, "Error") {
			t.Errorf("writing %s: %s", at, got)
		}
	}
	if got := calls(t, built, "Write", `{"path":"/results/a","content":"x"}`); !strings.HasPrefix(got, "Error") {
		t.Errorf("writing to /results: %s", got)
	}
	if _, err := os.Stat(filepath.Join(state, "tmp", "a")); err != nil {
		t.Errorf("what is in /tmp does not outlive the process: %v", err)
	}
	changed, err := built.Files.Changed(t.Context())
	if err != nil || len(changed) != 1 || changed[0].Path != "/workspace/a" {
		t.Errorf("changed are %+v, %v", changed, err)
	}
}

// A bench is a sandbox with a shell in which nothing is ever run.
type bench struct{ sandbox.Sandbox }

func (bench) Describe(context.Context) (sandbox.Description, error) {
	return sandbox.Description{Shell: "/bin/sh"}, nil
}

func TestInstructionsNameTheScratchFilesOfCommands(t *testing.T) {
	const words = "- /tmp: your own scratch files, gone when the work ends; commands have another /tmp\n"
	for builtin, want := range map[string]bool{"Shell": true, "Think": false} {
		built := build(t, func(p *config.Parts) {
			p.Sandbox, p.Snapshot.Sandbox = bench{}, &task.Sandbox{Image: "i"}
			p.Snapshot.Agent.Tools = []task.Tool{{Builtin: "Files"}, {Builtin: builtin}}
		})
		if said := built.Engine.Actor.Agent.Instructions; strings.Contains(said, words) != want {
			t.Errorf("an agent with %s is told: %s", builtin, said)
		}
	}
}
