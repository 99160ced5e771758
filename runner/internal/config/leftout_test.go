package config_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestListsAndSearchesLeaveOutWhatARuleForbidsToRead(t *testing.T) {
	calls := []string{
		`Grep {"pattern":"secret","output_mode":"content"}`,
		`Grep {"pattern":"secret","output_mode":"content","path":".github"}`,
		`Grep {"pattern":"secret","output_mode":"content","path":"ci"}`,
		`Grep {"pattern":"secret","output_mode":"content","path":"ci.yml"}`,
		`Grep {"pattern":"secret","output_mode":"content","glob":".github/**"}`,
		`Grep {"pattern":"secret","output_mode":"content","glob":"{.github,x}/**"}`,
		`Grep {"pattern":"secret","output_mode":"content","path":"/","glob":"/workspace/.github/**/*.yml"}`,
		`Glob {"pattern":".github/**"}`,
		`Glob {"pattern":"ci/*.yml"}`,
		`Glob {"pattern":"*.yml"}`,
		`Glob {"pattern":"/workspace/.github/workflows/*"}`,
		`Glob {"pattern":"workflows/*","path":"src/hub"}`,
		`Ls {"path":".github/workflows"}`,
		`Ls {"path":"src/hub/workflows"}`,
		`Ls {"path":"/workspace//ci/"}`,
	}
	for _, answer := range []string{"Deny", "Ask"} {
		f := newFixer(t, rule(ciPaths, answer))
		for i, got := range f.run(calls) {
			if !strings.Contains(got, " left out: the policy does not let this agent read ") || strings.Contains(got, "secret-ci") || strings.Contains(got, "ci.yml") {
				t.Errorf("%s: %s\n%s", answer, calls[i], got)
			}
		}
	}
	f := newFixer(t)
	for i, got := range f.run(calls) {
		if strings.Contains(got, "left out") || !strings.Contains(got, "/workspace/.github/workflows/ci.yml") && !strings.Contains(got, "/workspace/ci.yml") {
			t.Errorf("without a rule: %s\n%s", calls[i], got)
		}
	}
}

// An agent without rules of its own finds only what the agent that called it may
// read.
func TestListsAndSearchesOfACalledAgentLeaveOutWhatTheCallerMayNotRead(t *testing.T) {
	f := newFixer(t, rule(ciPaths, "Deny"))
	m := f.parts.Snapshot.Models[0]
	m.Name, m.Driver = "called", "called"
	f.parts.Snapshot.Models = append(f.parts.Snapshot.Models, m)
	f.parts.Snapshot.Agent.Models = []string{"m"}
	f.parts.Snapshot.Agent.Tools = append(f.parts.Snapshot.Agent.Tools, task.Tool{Agent: "reviewer"})
	f.parts.Snapshot.Agents = []task.Agent{{Name: "reviewer", Models: []string{"called"}, Tools: []task.Tool{{Builtin: "Files"}}, ParallelTools: 1}}
	f.parts.Task.Limits.Depth = 1
	calls := []string{
		`Grep {"pattern":"secret","output_mode":"content"}`, `Glob {"pattern":".github/**"}`, `Ls {"path":".github/workflows"}`,
	}
	addModel(f.t, f.registry, "called", func(context.Context, registry.ModelSpec) (model.Model, error) { return callingModel{calls}, nil })
	f.run([]string{`reviewer {"prompt":"Look around."}`})
	const left = "\n[1 file left out: the policy does not let this agent read it]"
	want := []string{"/workspace/src/a.go:1:package a // secret-a" + left, "No files found" + left, "The directory is empty" + left}
	var got []string
	for r, err := range f.journal.Read() {
		if err != nil {
			t.Fatal(err)
		}
		if r.Kind == journal.KindResult && r.Session == "s2c1" {
			got = append(got, r.Step.Text())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the called agent reads -want +got:\n%s", diff)
	}
}

// More files than a search returns do not keep those that may be read from being
// found.
func TestManyDeniedFilesDoNotHideTheOthers(t *testing.T) {
	f := newFixer(t, rule(ciPaths, "Deny"))
	for i := range backend.MaxFound + 1 {
		f.put(fmt.Sprintf(".github/many/%d.txt", i), "secret-ci")
	}
	f.put("src/z.txt", "secret-z")
	got := f.run([]string{`Glob {"pattern":"*.txt"}`, `Grep {"pattern":"secret","glob":"*.txt","output_mode":"content","limit":10}`, `Ls {"path":".github/many"}`})
	want := []string{
		"/workspace/src/z.txt\n[1001 files left out: the policy does not let this agent read them]",
		"/workspace/src/z.txt:1:secret-z\n[1001 files left out: the policy does not let this agent read them]",
		"The directory is empty\n[1001 files left out: the policy does not let this agent read them]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The answer to a search of a file that may not be read does not depend on what
// the file contains.
func TestGrepRevealsNothingOfAFileThatMayNotBeRead(t *testing.T) {
	for _, where := range []string{
		`"path":".github/workflows/ci.yml"`, `"path":"ci.yml"`, `"path":".github"`, `"path":"src/hub"`, `"glob":".github/**"`,
		`"path":"/workspace/.github/workflows/bin"`,
	} {
		f := newFixer(t, rule(ciPaths, "Deny"))
		f.put(".github/workflows/bin", "secret-ci\x00")
		var calls []string
		for _, mode := range []string{"content", "files_with_matches", "count"} {
			for _, pattern := range []string{"secret-ci$", "secret-xi$", ""} {
				calls = append(calls, fmt.Sprintf(`Grep {"pattern":%q,"output_mode":%q,%s}`, pattern, mode, where))
			}
		}
		got := f.run(calls)
		for i := range got {
			if got[i] != got[0] || !strings.Contains(got[i], " left out: ") {
				t.Errorf("%s\n%s\nother than %s\n%s", calls[i], got[i], calls[0], got[0])
			}
		}
	}
}
