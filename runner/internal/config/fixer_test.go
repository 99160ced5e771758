package config_test

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A callingModel makes the calls of one turn after the other, each written as
// "Name {…}", and is then done. It goes by the session, so that it does not notice
// a resume.
type callingModel [][]string

func (m callingModel) Stream(_ context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		turn := 0
		for _, s := range req.Steps {
			if s.Role == step.RoleAssistant {
				turn++
			}
		}
		usage := step.Usage{OutputTokens: 1}
		if turn >= len(m) {
			yield(model.Delta{Text: "done", Usage: &usage, Finish: step.FinishStop}, nil)
			return
		}
		for i, call := range m[turn] {
			name, args, _ := strings.Cut(call, " ")
			if !yield(model.Delta{Call: &model.CallDelta{Index: i, Name: name, Args: args}}, nil) {
				return
			}
		}
		yield(model.Delta{Usage: &usage, Finish: step.FinishCalls}, nil)
	}
}

// A fixer is a Files-only agent in a workspace with links.
type fixer struct {
	t        *testing.T
	dir      string
	registry *config.Registry
	parts    config.Parts
	engine   func(*engine.Config)
	journal  *journal.Memory
	turns    callingModel // of the current attempt
}

func newFixer(t *testing.T, rules ...task.Rule) *fixer {
	t.Helper()
	f := &fixer{t: t, dir: t.TempDir(), registry: config.NewRegistry(), journal: &journal.Memory{}, engine: func(*engine.Config) {}}
	addModel(t, f.registry, "calling", func(context.Context, registry.ModelSpec) (model.Model, error) { return f.turns, nil })
	f.put(".github/workflows/ci.yml", "on: push # secret-ci\n")
	f.put("src/a.go", "package a // secret-a\n")
	f.link(".github/workflows", "ci")
	f.link(".github/workflows/ci.yml", "ci.yml")
	f.link("../.github", "src/hub")
	f.link("src", "code")
	f.parts = parts(t)
	f.parts.Workspace = at(t, f.dir)
	f.parts.Snapshot.Models[0] = task.Model{Name: "m", Provider: "Custom", Driver: "calling", ContextWindow: 64_000, MaxOutputTokens: 4_000}
	f.parts.Snapshot.Agent.Tools = []task.Tool{{Builtin: "Files"}}
	f.parts.Snapshot.Agent.Policy = rules
	f.parts.Snapshot.Agent.ParallelTools = 1
	f.parts.Task.Limits.Steps = 20
	return f
}

func (f *fixer) put(name, content string) {
	f.t.Helper()
	at := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(content), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixer) link(target, name string) {
	f.t.Helper()
	if err := os.Symlink(target, filepath.Join(f.dir, name)); err != nil {
		f.t.Fatal(err)
	}
}

// pipelines are the files below .github.
func (f *fixer) pipelines() string {
	f.t.Helper()
	var all []string
	for _, name := range []string{"ci.yml", "evil.yml"} {
		data, err := os.ReadFile(filepath.Join(f.dir, ".github/workflows", name))
		if err == nil {
			all = append(all, name+": "+string(data))
		}
	}
	return strings.Join(all, "")
}

// run lets the agent make the calls and returns what the model reads after each.
func (f *fixer) run(turns ...[]string) []string {
	f.t.Helper()
	if out := f.attempt(turns...); out.Reason != task.ReasonFinished && out.Reason != task.ReasonInterrupted {
		f.t.Fatalf("ended %s: %s", out.Reason, out.Message)
	}
	return f.results()
}

// attempt lets the agent make the calls, going on from the journal.
func (f *fixer) attempt(turns ...[]string) engine.Outcome {
	f.t.Helper()
	f.turns = turns
	built, err := f.registry.Build(f.t.Context(), f.parts)
	if err != nil {
		f.t.Fatal(err)
	}
	c := built.Engine
	c.Journal, c.Events, c.Report, c.Redact = f.journal, sink{}, &report{}, redact.New()
	c.LowSpace, c.Now, c.Began = func() bool { return false }, time.Now, time.Now()
	f.engine(&c)
	return engine.Run(f.t.Context(), c)
}

// results are what the model has read after its calls.
func (f *fixer) results() []string {
	f.t.Helper()
	book, err := state.Replay(f.journal.Read())
	if err != nil {
		f.t.Fatal(err)
	}
	var results []string
	for _, s := range book.Session("").Steps {
		if s.Role == step.RoleTool {
			results = append(results, s.Text())
		}
	}
	return results
}

// prompt is the prompt that the agent gets.
func (f *fixer) prompt() string {
	f.t.Helper()
	book, err := state.Replay(f.journal.Read())
	if err != nil {
		f.t.Fatal(err)
	}
	return book.Session("").Steps[0].Text()
}
