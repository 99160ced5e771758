package config_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// each writes a call for every path.
func each(format string, paths []string) []string {
	var all []string
	for _, p := range paths {
		all = append(all, fmt.Sprintf(format, p))
	}
	return all
}

// ciSpellings are ways to write a path that leads to ci.yml.
var ciSpellings = []string{
	"/workspace/.github/workflows/ci.yml",
	".github/workflows/ci.yml",
	"./.github/workflows/ci.yml",
	"/workspace//.github//workflows/ci.yml",
	"/workspace/./.github/./workflows/ci.yml",
	".github/workflows/ci.yml/",
	"ci/ci.yml",
	"/workspace/ci/ci.yml",
	"ci.yml",
	"src/hub/workflows/ci.yml",
	"code/hub/workflows/ci.yml",
}

func rule(when, answer string) task.Rule {
	return task.Rule{Name: "ci-is-ours", When: when, Answer: answer, Reason: "the pipelines are not yours"}
}

const ciPaths = `tool in ["Read", "Write", "Edit"] && args.path.startsWith("/workspace/.github/")`

func TestRulesJudgeTheFileAndNotHowItsPathIsWritten(t *testing.T) {
	evil := []string{
		"/workspace/.github/workflows/evil.yml", ".github/workflows/evil.yml", "/workspace//.github/workflows/evil.yml",
		"/workspace/./.github/workflows/evil.yml", "ci/evil.yml", "src/hub/workflows/evil.yml", ".github/workflows/evil.yml/",
	}
	for answer, want := range map[string]string{
		"Deny": "Error: Denied by policy rule ci-is-ours: the pipelines are not yours\n",
		"Ask":  "Error: Denied: it needs the approval of a user, and there is no way to ask one.\n",
	} {
		for _, calls := range [][]string{
			each(`Write {"path":%q,"content":"on: evil"}`, evil),
			each(`Write {"path":%q,"content":"on: evil"}`, ciSpellings),
			each(`Edit {"path":%q,"old_string":"push","new_string":"evil"}`, ciSpellings),
			each(`Read {"path":%q}`, ciSpellings),
		} {
			f := newFixer(t, rule(ciPaths, answer))
			for i, got := range f.run(calls) {
				if !strings.HasPrefix(got, want) {
					t.Errorf("%s: %s\n%s", answer, calls[i], got)
				}
			}
			if got := f.pipelines(); got != "ci.yml: on: push # secret-ci\n" {
				t.Errorf("%s: the pipelines are %q", answer, got)
			}
		}
	}
}

func TestAnAgentThatOnlyReadsCannotWrite(t *testing.T) {
	f := newFixer(t)
	f.parts.Snapshot.Agent.Tools = []task.Tool{{Builtin: "Files", Allow: []string{"Read", "Ls", "Glob", "Grep"}}}
	got := f.run([]string{`Read {"path":"src/a.go"}`}, []string{`Write {"path":"new.go","content":"x"}`}, []string{`Edit {"path":"src/a.go","old_string":"secret","new_string":"open"}`})
	if want := "1  package a // secret-a\n[lines 1 to 1 of 1]"; got[0] != want {
		t.Errorf("Read says %q, want %q", got[0], want)
	}
	for i, name := range []string{"Write", "Edit"} {
		if !strings.HasPrefix(got[i+1], "Error: ") || !strings.Contains(got[i+1], name) {
			t.Errorf("%s says %q, want an error", name, got[i+1])
		}
	}
	if _, err := os.Stat(filepath.Join(f.dir, "new.go")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was written: %v", err)
	}
	if content, _ := os.ReadFile(filepath.Join(f.dir, "src/a.go")); string(content) != "package a // secret-a\n" {
		t.Errorf("a file was changed: %q", content)
	}
}

func TestASpellingOfAFileThatNoRuleForbidsIsReadAndWritten(t *testing.T) {
	f := newFixer(t, rule(ciPaths, "Deny"))
	got := f.run([]string{`Read {"path":"code/a.go"}`}, []string{`Edit {"path":"src//a.go","old_string":"secret","new_string":"open"}`},
		[]string{`Write {"path":"code/new/b.go","content":"x"}`}, []string{`Ls {"path":"code/new"}`}, []string{`Ls {}`})
	want := []string{
		"1  package a // secret-a\n[lines 1 to 1 of 1]",
		"Replaced 1 occurrence in /workspace/src/a.go, at line 1",
		"Created /workspace/src/new/b.go (1 bytes)",
		"/workspace/src/new/b.go  1 bytes",
		// Of the links, ci and ci.yml lead to what may not be read.
		"/workspace/.github/\n/workspace/code/\n/workspace/src/\n[2 files left out: the policy does not let this agent read them]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRulesSeeTheFolderThatIsSearched(t *testing.T) {
	calls := []string{
		`Ls {"path":".github/workflows"}`, `Ls {"path":"ci"}`, `Ls {"path":"src//hub/workflows/"}`,
		`Glob {"pattern":".github/workflows/*"}`, `Glob {"pattern":"*","path":"ci"}`, `Glob {"pattern":"/workspace/ci/*"}`, `Glob {"pattern":"./ci/*.yml"}`,
		`Grep {"pattern":"x","path":"ci"}`, `Grep {"pattern":"x","glob":"ci/**"}`, `Grep {"pattern":"x","path":"src/hub","glob":"workflows/*"}`,
	}
	f := newFixer(t, rule(`args.path == "/workspace/.github/workflows"`, "Deny"))
	for i, got := range f.run(calls) {
		if !strings.HasPrefix(got, "Error: Denied by policy rule ci-is-ours") {
			t.Errorf("%s\n%s", calls[i], got)
		}
	}
	f = newFixer(t, rule(`tool in ["Ls", "Glob", "Grep"] && args.path == "/workspace"`, "Deny"))
	for i, got := range f.run([]string{`Ls {}`, `Glob {"pattern":"*"}`, `Grep {"pattern":"x"}`, `Ls {"path":""}`, `Ls {"path":"."}`}) {
		if !strings.HasPrefix(got, "Error: Denied by policy rule ci-is-ours") {
			t.Errorf("call %d without a path: %s", i+1, got)
		}
	}
}

func TestALinkMadeByACommandBetweenTwoCallsIsResolved(t *testing.T) {
	for name, turns := range map[string][][]string{
		"in an earlier turn":   {{`Link {}`}, {`Write {"path":"out/evil.yml","content":"x"}`}},
		"in the turn itself":   {{`Link {}`, `Write {"path":"out/evil.yml","content":"x"}`}},
		"over a written place": {{`Write {"path":"new","content":"x"}`}, {`Link {}`}, {`Write {"path":"out/evil.yml","content":"x"}`}},
	} {
		f := newFixer(t, rule(ciPaths, "Deny"))
		addTool(f.t, f.registry, "Link", func(context.Context, registry.ToolSpec) ([]tool.Tool, error) {
			spec := tool.Spec{Concurrency: tool.Sequential}
			spec.Name = "Link"
			return []tool.Tool{tool.Typed(spec, func(context.Context, tool.Call, struct{}) (tool.Result, error) {
				return tool.Result{Text: "linked"}, os.Symlink(".github/workflows", filepath.Join(f.dir, "out"))
			})}, nil
		})
		f.parts.Snapshot.Agent.Tools = append(f.parts.Snapshot.Agent.Tools, task.Tool{Custom: "Link"})
		results := f.run(turns...)
		if got := results[len(results)-1]; !strings.HasPrefix(got, "Error: Denied by policy rule ci-is-ours") || strings.Contains(f.pipelines(), "evil") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestAHookThatChangesAPathIsJudgedOnTheFile(t *testing.T) {
	var seen []string
	f := newFixer(t, rule(ciPaths, "Deny"))
	addLayer(f.t, f.registry, func(context.Context, registry.LayerSpec) (middleware.Layer, error) {
		return middleware.Layer{Name: "rewrite", Tool: func(next middleware.ToolFunc) middleware.ToolFunc {
			return func(ctx context.Context, c *tool.Call) (tool.Result, error) {
				seen = append(seen, string(c.Args))
				changed := *c
				changed.Args = json.RawMessage(strings.Replace(string(c.Args), "/workspace/src/a.go", "ci/evil.yml", 1))
				return next(ctx, &changed)
			}
		}}, nil
	})
	got := f.run([]string{`Write {"path":"code/a.go","content":"x"}`, `Write {"path":"src/c.go","content":"x"}`})
	if !strings.HasPrefix(got[0], "Error: Denied by policy rule ci-is-ours") || got[1] != "Created /workspace/src/c.go (1 bytes)" {
		t.Errorf("the model reads %q", got)
	}
	want := []string{`{"content":"x","path":"/workspace/src/a.go"}`, `{"content":"x","path":"/workspace/src/c.go"}`}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("the hook sees -want +got:\n%s", diff)
	}
}

// A watcher keeps what people are shown of what they are asked, and makes its
// decisions as soon as they are asked something.
type watcher struct {
	sink
	signals.Latest
	decisions []task.Decision
	onAsk     func()

	mu    sync.Mutex
	asked []task.Pending
}

func newWatcher(decisions ...task.Decision) *watcher {
	w := &watcher{decisions: decisions}
	w.onAsk = func() { w.Update(func(s *signals.Signals) { s.Decisions = decisions }) }
	return w
}

// interrupt says that the pod is shut down.
func (w *watcher) interrupt() {
	w.Update(func(s *signals.Signals) { s.Interrupted = true })
}

func (w *watcher) Report(now func() task.Progress) { w.look(now()) }

func (*watcher) Accepted() bool { return true }

func (w *watcher) Begin(_ context.Context, now func() task.Progress) error {
	w.look(now())
	return nil
}

func (w *watcher) Commit(_ context.Context, now func() task.Progress) error {
	w.look(now())
	return nil
}

func (w *watcher) look(p task.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range p.Pending {
		if !slices.ContainsFunc(w.asked, func(known task.Pending) bool { return known.ID == q.ID }) {
			w.asked = append(w.asked, q)
			w.onAsk()
		}
	}
}

// approveWrite approves the first call of the first turn, if it is this one.
func approveWrite(canonical string) *watcher {
	return newWatcher(task.Decision{
		Name: "ok", By: "ann", Request: "s2c1-" + digest.Short(digest.Call("Write", json.RawMessage(canonical))), Type: task.DecisionApprove,
	})
}

const askWrites = `tool == "Write"`

func TestApproversSeeAndApproveTheFile(t *testing.T) {
	const canonical = `{"content":"x","path":"/workspace/src/new.go"}`
	for _, path := range []string{"/workspace/src/new.go", "src/new.go", "code//new.go", "/workspace/./code/new.go", "src/new.go/"} {
		f := newFixer(t, rule(askWrites, "Ask"))
		w := approveWrite(canonical)
		f.engine = func(c *engine.Config) { c.Report, c.Signals, c.CanAsk = w, w, true }
		got := f.run([]string{fmt.Sprintf(`Write {"path":%q,"content":"x"}`, path)})
		if got[0] != "Created /workspace/src/new.go (1 bytes)" {
			t.Errorf("%s: %s", path, got[0])
		}
		if len(w.asked) != 1 || w.asked[0].Args != canonical {
			t.Errorf("%s: people are shown %+v", path, w.asked)
		}
	}
}

// A swapping backend puts a link in the place of a directory when a file is about
// to be written.
type swapping struct {
	backend.Driver
	swap func()
}

func (s swapping) Write(ctx context.Context, path string, data []byte, when backend.Revision) error {
	s.swap()
	return s.Driver.Write(ctx, path, data, when)
}

func TestALinkSwappedInAfterTheApprovalIsNotFollowed(t *testing.T) {
	f := newFixer(t, rule(askWrites, "Ask"))
	f.put("out/keep", "")
	f.parts.Workspace = swapping{f.parts.Workspace, func() {
		_ = os.RemoveAll(filepath.Join(f.dir, "out"))
		f.link(".github/workflows", "out")
	}}
	w := approveWrite(`{"content":"x","path":"/workspace/out/evil.yml"}`)
	f.engine = func(c *engine.Config) { c.Report, c.Signals, c.CanAsk = w, w, true }
	got := f.run([]string{`Write {"path":"out/evil.yml","content":"x"}`})
	if want := "Error: Path '/workspace/out/evil.yml' became a symbolic link since the call was checked\n"; !strings.HasPrefix(got[0], want) {
		t.Errorf("the model reads %q", got[0])
	}
	if got := f.pipelines(); strings.Contains(got, "evil") {
		t.Errorf("the pipelines are %q", got)
	}
}

// What was approved is what a resumed call does, or it does nothing.
func TestAResumedCallKeepsTheFileThatWasApproved(t *testing.T) {
	f := newFixer(t, rule(askWrites, "Ask"))
	f.put("out/keep", "")
	w := newWatcher()
	w.onAsk = w.interrupt
	f.engine = func(c *engine.Config) { c.Report, c.Signals, c.CanAsk = w, w, true }
	calls := []string{`Write {"path":"out/evil.yml","content":"x"}`}
	if got := f.run(calls); len(got) != 0 {
		t.Fatalf("the first attempt ended with %q", got)
	}
	if err := os.RemoveAll(filepath.Join(f.dir, "out")); err != nil {
		t.Fatal(err)
	}
	f.link(".github/workflows", "out")
	w = approveWrite(`{"content":"x","path":"/workspace/out/evil.yml"}`)
	approve := w.onAsk
	w.onAsk = func() {
		approve()
		if w.asked[0].ID != w.decisions[0].Request {
			w.interrupt() // the approval is of no use: do not wait for another
		}
	}
	f.engine = func(c *engine.Config) { c.Report, c.Signals, c.CanAsk = w, w, true }
	got := f.run(calls)
	if want := "Error: Path '/workspace/out/evil.yml' became a symbolic link since the call was checked\n"; len(got) != 1 || !strings.HasPrefix(got[0], want) {
		t.Errorf("the model reads %q", got)
	}
	if got := f.pipelines(); strings.Contains(got, "evil") {
		t.Errorf("the pipelines are %q", got)
	}
}
