package attempt

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/session/memory"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// continues makes the pod one of a Run that continues the Run of another pod, whose directories it mounts.
func (p *testPod) continues(t *testing.T, before *testPod, change ...func(*task.Continue)) *testPod {
	t.Helper()
	p.task.Run.Name, p.task.Run.UID = "next-of-"+before.task.Run.Name, "next-of-"+before.task.Run.UID
	p.task.Continue = &task.Continue{Run: before.task.Run.Name, RunUID: before.task.Run.UID}
	for _, c := range change {
		c(p.task.Continue)
	}
	p.source, p.home = t.TempDir(), filepath.Join(t.TempDir(), "home")
	mounts := map[string]string{"state": before.State, "workspace": before.Workspace, "home": before.home}
	if p.task.Continue.Workspace == task.ContinueFresh {
		mounts = map[string]string{"state": before.State}
	}
	for name, dir := range mounts {
		if dir == "" {
			continue
		}
		if err := os.Symlink(dir, filepath.Join(p.source, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(p.home, 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

// answered are the turns of a model that has answered so often before, in the session that is continued.
func answered(times int, turns ...modeltest.Turn) []modeltest.Turn {
	return append(make([]modeltest.Turn, times), turns...)
}

func readTurn(path string) modeltest.Turn {
	args, _ := json.Marshal(map[string]string{"path": path})
	return modeltest.Turn{Calls: []modeltest.Call{{Name: "Read", Args: args}}}
}

// finished fetches and runs to the end.
func (p *testPod) finished(t *testing.T, options ...option) *testPod {
	t.Helper()
	if code := Fetch(p.Environment); code != task.ExitCommitted {
		t.Fatalf("fetch ends with exit code %d: %+v", code, p.termination(t))
	}
	if code := p.run(options...); code != task.ExitCommitted {
		t.Fatalf("exit code %d: %+v", code, p.termination(t))
	}
	return p
}

// asked returns the last request to the model.
func (p *testPod) asked(t *testing.T) string {
	t.Helper()
	all := p.model.Requests()
	if len(all) == 0 {
		t.Fatal("the model was not asked")
	}
	return string(all[len(all)-1].Raw)
}

func newEnded(t *testing.T) *testPod {
	t.Helper()
	return newTestPod(t, writeTurn("a.txt", "hello"), writeTurn("/memories/note", "remember"), modeltest.Turn{Text: "I wrote it."}).finished(t)
}

// A Run has the session and the files of the Run that it continues, and a store of sessions gets all of it.
func TestAPodContinuesAnotherRun(t *testing.T) {
	store := memory.New(memory.Options{})
	stored := withStore(func(context.Context, registry.StoreSpec) (session.Store, error) { return store, nil })
	first := newEnded(t)
	second := newTestPod(t, answered(3, readTurn("a.txt"), readTurn("/memories/note"), modeltest.Turn{Text: "Read."})...)
	second.continues(t, first).task.Prompt = "Now read it"
	second.finished(t, stored)
	for _, want := range []string{"I wrote it.", "Now read it", "1  hello", "1  remember", "This continues the work of the Run fix-1, which ended with Finished. Files may have changed since"} {
		if !strings.Contains(second.asked(t), want) {
			t.Errorf("the model has not read %q", want)
		}
	}
	var said []string
	for s, err := range store.Read(t.Context(), second.task.Run.UID, 1) {
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, string(s.Role))
	}
	if got := strings.Join(said, " "); got != "user assistant tool assistant tool assistant user assistant tool assistant tool assistant" {
		t.Errorf("the store has %s", got)
	}
	third := newTestPod(t, answered(6, modeltest.Turn{Text: "done"})...).continues(t, second)
	third.task.Prompt = "And a third time"
	third.finished(t)
	if asked := third.asked(t); !strings.Contains(asked, "I wrote it.") || !strings.Contains(asked, "Now read it") {
		t.Errorf("the third Run has asked %s", asked)
	}
	if text, err := os.ReadFile(filepath.Join(third.Workspace, "a.txt")); string(text) != "hello" {
		t.Errorf("its file has %q, %v", text, err)
	}
}

// What the Run before has read, changed and said is not what this one has: it must read a file before it changes it, and
// its result has neither files nor a text of the other.
func TestAPodThatContinuesHasDoneNothingItself(t *testing.T) {
	edit := modeltest.Turn{Calls: []modeltest.Call{{Name: "Edit", Args: json.RawMessage(`{"path":"a.txt","old_string":"hello","new_string":"bye"}`)}}}
	p := newTestPod(t, answered(3, edit, readTurn("a.txt"))...).continues(t, newEnded(t))
	p.task.Prompt, p.task.Limits.Steps = "Change it", 1
	if code := Fetch(p.Environment); code != task.ExitCommitted {
		t.Fatalf("exit code %d: %+v", code, p.termination(t))
	}
	p.run()
	r := p.termination(t).Result
	if r.Reason != task.ReasonStepLimit || r.Text != "" || len(r.Files) > 0 {
		t.Errorf("the result is %+v", r)
	}
	if text, err := os.ReadFile(filepath.Join(p.Workspace, "a.txt")); string(text) != "hello" {
		t.Errorf("it has changed a file that it has not read: %q, %v", text, err)
	}
}

// The model of a Run with files of its own is told that those of the Run before are not there.
func TestAPodContinuesAnotherRunWithoutItsFiles(t *testing.T) {
	p := newTestPod(t, answered(3, readTurn("a.txt"), readTurn("/memories/note"), modeltest.Turn{Text: "done"})...)
	p.continues(t, newEnded(t), func(c *task.Continue) { c.Workspace = task.ContinueFresh }).task.Prompt = "Do it again"
	p.finished(t)
	for want, isThere := range map[string]bool{
		"Its files are not here: /workspace has the files that the work begins with.": true,
		"Files may have changed since": false, "1  hello": false, "1  remember": true,
	} {
		if strings.Contains(p.asked(t), want) != isThere {
			t.Errorf("%q: want %t", want, isThere)
		}
	}
}

// Neither fetch nor runner makes a fresh start of a session that cannot be read.
func TestAPodThatHasNothingToContinue(t *testing.T) {
	journalOf := func(p *testPod) string { return filepath.Join(p.State, "journal-0001.jsonl") }
	for name, tc := range map[string]struct {
		spoil func(t *testing.T, before *testPod)
		fetch int
		want  string
	}{
		"an empty volume":          {func(t *testing.T, before *testPod) { before.State, before.Workspace = t.TempDir(), t.TempDir() }, task.ExitConfig, "has no journal"},
		"a journal of another Run": {func(_ *testing.T, before *testPod) { before.task.Run.UID = "other" }, task.ExitConfig, "belongs to the Run with UID"},
		"a journal with a damaged header": {func(t *testing.T, before *testPod) {
			t.Helper()
			replaceIn(t, journalOf(before), `"version":1`, `"version":9`)
		}, task.ExitConfig, "checksum"},
		"a damaged journal": {func(t *testing.T, before *testPod) {
			t.Helper()
			replaceIn(t, journalOf(before), "hello", "hallo")
		}, task.ExitCommitted, "checksum"},
		"an empty journal": {func(t *testing.T, before *testPod) {
			t.Helper()
			if err := os.Truncate(journalOf(before), 0); err != nil {
				t.Fatal(err)
			}
		}, task.ExitConfig, "has no journal"},
	} {
		t.Run(name, func(t *testing.T) {
			before := newEnded(t)
			tc.spoil(t, before)
			p := newTestPod(t, modeltest.Turn{Text: "a fresh start"}).continues(t, before)
			code := Fetch(p.Environment)
			if code != tc.fetch {
				t.Fatalf("fetch ends with exit code %d: %+v", code, p.termination(t))
			}
			if code == task.ExitCommitted {
				code = p.run()
			}
			r := p.termination(t).Result
			if code != task.ExitConfig || r.Reason != task.ReasonNothingToContinue || !strings.Contains(r.Message, tc.want) || !strings.Contains(r.Message, "Nothing was done") {
				t.Errorf("exit code %d, %s: %s", code, r.Reason, r.Message)
			}
			if code := p.run(); code != task.ExitConfig || len(p.model.Requests()) > 0 {
				t.Errorf("without fetch: exit code %d, and the model was asked %d times", code, len(p.model.Requests()))
			}
		})
	}
}

// A last line that was cut belongs to a Run that was killed: the session is continued without it.
func TestAPodContinuesARunThatWasKilled(t *testing.T) {
	before := newEnded(t)
	name := filepath.Join(before.State, "journal-0001.jsonl")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(data), "I wrote it.")
	writeFile(t, name, string(data[:at]))
	p := newTestPod(t, answered(2, modeltest.Turn{Text: "done"})...).continues(t, before)
	p.task.Prompt = "Continue"
	p.finished(t)
	if asked := p.asked(t); strings.Contains(asked, "I wrote it.") || !strings.Contains(asked, "hello") || !strings.Contains(asked, "ended with no result") {
		t.Errorf("the model has read %s", asked)
	}
}

// Attempts of a Run with a volume copy once: later pods need not mount the Run before.
func TestALaterAttemptNeedsNoSource(t *testing.T) {
	p := newTestPod(t, answered(3, modeltest.Turn{Text: "done"})...).continues(t, newEnded(t))
	p.task.Prompt = "Again"
	if code := Fetch(p.Environment); code != task.ExitCommitted {
		t.Fatalf("exit code %d: %+v", code, p.termination(t))
	}
	p.source, p.task.Attempt = filepath.Join(p.source, "none"), 2
	p.finished(t)
	if err := journal.CheckOwner(journal.SourceDir(p.State), "fix-1", "uid-1"); err != nil {
		t.Error(err)
	}
}

// The credentials of the repository are needed to push, and not to copy the files of another Run.
func TestAPodThatContinuesNeedsNoCredentialsToCopy(t *testing.T) {
	git := &task.Git{URL: newGitServerWithLFS(t)}
	first := newTestPod(t, writeTurn("a.txt", "hello"), modeltest.Turn{Text: "done"})
	first.snapshot.Workspace.Git = git
	first.finished(t)
	p := newTestPod(t, modeltest.Turn{Text: "done"}).continues(t, first)
	p.snapshot.Workspace.Git = &task.Git{URL: git.URL, Secret: "not-there"}
	if code := Fetch(p.Environment); code != task.ExitCommitted {
		t.Fatalf("exit code %d: %+v", code, p.termination(t))
	}
	other := newTestPod(t).continues(t, first)
	other.snapshot.Workspace.Git = &task.Git{URL: "https://git.example.com/other.git"}
	if code := Fetch(other.Environment); code != task.ExitConfig || !strings.Contains(other.termination(t).Result.Message, "asks for https://git.example.com/other.git") {
		t.Errorf("another repository: exit code %d: %+v", code, other.termination(t))
	}
}

// A Run publishes to the branch of the Run that it continues, and a fork to its own.
func TestTheBranchOfAPodThatContinues(t *testing.T) {
	git := &task.Git{URL: newGitServerWithLFS(t), Publish: true}
	first := newTestPod(t, writeTurn("a.txt", "hello"), modeltest.Turn{Text: "done"})
	first.snapshot.Workspace.Git = git
	first.finished(t)
	for name, tc := range map[string]struct {
		change   func(*task.Continue)
		answered int
		want     string
	}{
		"to its end":    {func(*task.Continue) {}, 2, "deckhand/fix-1"},
		"from a step":   {func(c *task.Continue) { c.Step = 3 }, 1, "deckhand/fork-1"},
		"without files": {func(c *task.Continue) { c.Workspace = task.ContinueFresh }, 2, "deckhand/fresh-1"},
	} {
		t.Run(name, func(t *testing.T) {
			turns := answered(tc.answered, writeTurn("b.txt", name), modeltest.Turn{Text: "done"})
			p := newTestPod(t, turns...).continues(t, first, tc.change)
			p.snapshot.Workspace.Git, p.task.Prompt = git, "More"
			if p.task.Run.Name = "other-1"; tc.want != "deckhand/fix-1" {
				p.task.Run.Name = strings.TrimPrefix(tc.want, "deckhand/")
			}
			p.finished(t)
			last := p.api.reported[len(p.api.reported)-1]
			if last.Result == nil || last.Result.Published == nil || last.Result.Published.Branch != tc.want {
				t.Errorf("the result is %+v", last.Result)
			}
		})
	}
}

// A Run that works on the files of another has its clone, its branch and its list of missing files, and fetches nothing.
func TestTheBranchOfAPodThatShares(t *testing.T) {
	git := &task.Git{URL: newGitServerWithLFS(t), Publish: true}
	first := newTestPod(t, writeTurn("a.txt", "hello"), modeltest.Turn{Text: "done"})
	first.snapshot.Workspace.Git = git
	first.finished(t)
	origin := t.TempDir()
	for _, tc := range []struct {
		name, want string
		step       int64
		answered   int
	}{{"second-1", "deckhand/fix-1", 0, 2}, {"fork-1", "deckhand/fork-1", 3, 1}} {
		p := newTestPod(t, answered(tc.answered, writeTurn(tc.name+".txt", "more"), modeltest.Turn{Text: "done"})...)
		p.continues(t, first, func(c *task.Continue) { c.Step, c.Workspace = tc.step, task.ContinueShare })
		p.Workspace, p.origin, p.snapshot.Workspace.Git, p.task.Prompt, p.task.Run.Name = first.Workspace, origin, git, "More", tc.name
		p.finished(t)
		last := p.api.reported[len(p.api.reported)-1]
		if last.Result == nil || last.Result.Published == nil || last.Result.Published.Branch != tc.want {
			t.Errorf("%s: the result is %+v", tc.name, last.Result)
		}
		if _, err := os.Stat(filepath.Join(origin, "workspace", "fetched.json")); err != nil {
			t.Errorf("%s: the records are not where all see them: %v", tc.name, err)
		}
	}
	other := newTestPod(t).continues(t, first, func(c *task.Continue) { c.Workspace = task.ContinueShare })
	other.Workspace, other.origin, other.snapshot.Workspace.Git = first.Workspace, t.TempDir(), &task.Git{URL: "https://git.example.com/other.git"}
	if code := Fetch(other.Environment); code != task.ExitConfig || !strings.Contains(other.termination(t).Result.Message, "asks for https://git.example.com/other.git") {
		t.Errorf("another repository: exit code %d: %+v", code, other.termination(t))
	}
}

func replaceIn(t *testing.T, name, old, with string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(data), old) {
		t.Fatalf("%s has no %q: %v", name, old, err)
	}
	writeFile(t, name, strings.Replace(string(data), old, with, 1))
}
