package workspace_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/workspace"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A before is the directories of a Run that has ended.
type before struct {
	*place

	home string
	uid  string
}

// newBefore makes a Run with a journal, files of its session, and files.
func newBefore(t testing.TB, git *workspace.Git, uid string) *before {
	t.Helper()
	b := &before{place: newPlace(t, git), uid: uid}
	b.home = filepath.Join(filepath.Dir(b.dir), "home")
	must(t, os.Mkdir(b.home, 0o755))
	b.fetch(t)
	journalOf(t, b.state, uid, nil)
	write(t, b.state, map[string]string{
		"results/s2c1": "a long result", "memories/note": "remember", "tmp/scratch": "x", "commands/cwd": "/workspace",
		"lock": "1 host", "reserve": "…", "events/events-0001.jsonl": "{}",
	})
	write(t, b.dir, map[string]string{"work/done.txt": "by the first Run\n", "work/run.sh*": "#!/bin/sh\n", "work/link": "-> ../README.md"})
	write(t, b.home, map[string]string{".cache/x": "cached", ".profile": "export A=b\n"})
	return b
}

func journalOf(t testing.TB, dir, uid string, c *journal.Continued) {
	t.Helper()
	d, err := journal.Open(journal.Options{Dir: dir, RunUID: uid, Attempt: 1, Now: time.Now, Continue: c})
	must(t, err)
	must(t, d.Close())
}

// source names the Run, for a Run that continues it.
func (b *before) source(p *place, change ...func(*workspace.Source)) workspace.Source {
	s := workspace.Source{
		State: b.state, Workspace: b.dir, Home: b.home, Origin: filepath.Join(b.dir, "none"),
		Continue: task.Continue{Run: "first", RunUID: b.uid},
		Folders:  []string{"results", "memories", "tmp", "commands"}, Warn: func(line string) { p.logged = append(p.logged, line) },
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

// after is a new place for a Run that continues another.
func after(t testing.TB, git *workspace.Git) *place {
	t.Helper()
	p := newPlace(t, git)
	must(t, os.Mkdir(filepath.Join(filepath.Dir(p.dir), "home"), 0o755))
	return p
}

// continues takes over what a Run has left.
func (p *place) continues(t testing.TB, b *before, change ...func(*workspace.Source)) *place {
	t.Helper()
	must(t, p.takeOver(t.Context(), b, change...))
	return p
}

func (p *place) takeOver(ctx context.Context, b *before, change ...func(*workspace.Source)) error {
	return workspace.TakeOver(ctx, p.bounded(0), b.source(p, change...))
}

// everything lists the entries below a directory, with their modes and contents.
func everything(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	must(t, filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		info, err := e.Info()
		if err != nil {
			return err
		}
		what := info.Mode().String()
		switch {
		case e.Type() == fs.ModeSymlink:
			target, err := os.Readlink(name)
			out[rel] = what + " " + target
			return err
		case e.IsDir():
			out[rel] = what
		default:
			data, err := os.ReadFile(name)
			out[rel] = what + " " + info.ModTime().Format(time.RFC3339Nano) + " " + string(data)
			return err
		}
		return nil
	}))
	return out
}

// sameFiles compares what was copied.
func sameFiles(t testing.TB, b *before, p *place) {
	t.Helper()
	if diff := cmp.Diff(everything(t, b.dir), everything(t, p.dir)); diff != "" {
		t.Errorf("the workspace -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(everything(t, b.home), everything(t, filepath.Join(filepath.Dir(p.dir), "home"))); diff != "" {
		t.Errorf("the home -want +got:\n%s", diff)
	}
}

// names lists the files below a directory but those of the clone.
func names(t testing.TB, dir string) string {
	t.Helper()
	var out []string
	must(t, filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && name == filepath.Join(dir, "workspace", "git") {
			return filepath.SkipDir
		}
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(dir, name)
			out = append(out, rel)
		}
		return err
	}))
	return strings.Join(out, " ")
}

const sessionOfFirst = "source/commands/cwd source/journal-0001.jsonl source/memories/note source/results/s2c1 source/tmp/scratch"

// A Run that continues another has its session and its files; what belongs to its runner stays behind. It is done once.
func TestTakeOver(t *testing.T) {
	s := serve(t, seed)
	b := newBefore(t, s.git(), "one")
	write(t, b.dir, map[string]string{"out of it": "-> ../../etc", "work/absolute": "-> /etc/passwd"})
	must(t, os.Chmod(filepath.Join(b.dir, "work"), 0o555))
	long := time.Date(2020, 1, 2, 3, 4, 5, 6000, time.UTC)
	must(t, os.Chtimes(filepath.Join(b.dir, "work", "done.txt"), long, long))
	p := after(t, s.git()).continues(t, b)
	sameFiles(t, b, p)
	if got, want := names(t, p.state), sessionOfFirst+" workspace/fetch.lock workspace/fetched.json workspace/manifest.jsonl workspace/taken.json"; got != want {
		t.Errorf("the state has %s\nwant %s", got, want)
	}

	write(t, b.dir, map[string]string{"later": "x"})
	must(t, os.RemoveAll(b.state))
	must(t, os.Remove(filepath.Join(p.dir, "README.md")))
	p.continues(t, b)
	p.fetch(t)
	if _, err := os.Lstat(filepath.Join(p.dir, "later")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it was copied again: %v", err)
	}
	if s.clones() != 1 {
		t.Errorf("the repository was fetched %d times", s.clones())
	}
}

// With files of its own a Run has of the session only what was said, and its notes.
func TestTakeOverWithoutFiles(t *testing.T) {
	s := serve(t, seed)
	b := newBefore(t, s.git(), "one")
	_, err := b.publish(t)
	must(t, err)
	p := after(t, s.git()).continues(t, b, func(s *workspace.Source) {
		s.Continue.Workspace, s.Folders = task.ContinueFresh, []string{"results", "memories"}
		s.Workspace, s.Home = "/not/mounted", "/not/mounted"
	})
	if got := names(t, p.state); got != "source/journal-0001.jsonl source/memories/note source/results/s2c1 workspace/fetch.lock workspace/taken.json" {
		t.Errorf("the state has %s", got)
	}
	p.fetch(t)
	if _, err := os.Lstat(filepath.Join(p.dir, "work")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it has the files of the first Run: %v", err)
	}
	if branch, err := workspace.Branch(p.state); branch != "" || err != nil {
		t.Errorf("it publishes to %q, %v", branch, err)
	}
}

// The journals of a chain are copied, each with what its Run had not yet moved into its own folders.
func TestTakeOverOfAChain(t *testing.T) {
	one := newBefore(t, nil, "one")
	two := &before{place: after(t, nil).continues(t, one), uid: "two"}
	two.home = filepath.Join(filepath.Dir(two.dir), "home")
	journalOf(t, two.state, "two", &journal.Continued{Run: "first", RunUID: "one"})
	three := after(t, nil).continues(t, two)
	sameFiles(t, one, three)
	journalOf(t, three.state, "three", &journal.Continued{Run: "second", RunUID: "two"})
	if got := names(t, three.state); !strings.Contains(got, "source/journal-0001.jsonl source/source/commands/cwd source/source/journal-0001.jsonl") {
		t.Errorf("the state has %s", got)
	}
}

// A cut is a context that ends when it was asked a number of times: in the place of a kill between two files.
type cut struct {
	context.Context
	left *int
}

var errCut = errors.New("killed")

func (c cut) Err() error {
	if *c.left--; *c.left < 0 {
		return errCut
	}
	return nil
}

// A copy that was cut behind any of its files begins again, and ends with the same files.
func TestACopyThatWasCut(t *testing.T) {
	s := serve(t, small)
	b := newBefore(t, s.git(), "one")
	must(t, os.Chmod(filepath.Join(b.dir, "work"), 0o555))
	cuts := 0
	for after := 0; ; after++ {
		p := newPlace(t, s.git())
		must(t, os.Mkdir(filepath.Join(filepath.Dir(p.dir), "home"), 0o755))
		left := after
		err := p.takeOver(cut{t.Context(), &left}, b)
		if err != nil && !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		if err != nil {
			cuts++
			if record, _ := os.ReadFile(filepath.Join(p.state, "workspace", "fetched.json")); strings.Contains(string(record), `"Done"`) {
				t.Fatalf("cut after %d files, it counts as done", after)
			}
			p.continues(t, b)
		}
		sameFiles(t, b, p)
		if err == nil {
			break
		}
	}
	if cuts < 20 {
		t.Errorf("it was cut %d times", cuts)
	}
}

// What was staged is moved into place by the next attempt, from wherever that was cut, without the other Run.
func TestACopyThatWasCutWhileItMovedFiles(t *testing.T) {
	b := newBefore(t, nil, "one")
	p := after(t, nil).continues(t, b)
	home := filepath.Join(filepath.Dir(p.dir), "home")
	record := filepath.Join(p.state, "workspace", "fetched.json")
	data, err := os.ReadFile(record)
	must(t, err)
	must(t, os.WriteFile(record, []byte(strings.Replace(string(data), `"Done"`, `"Staged"`, 1)), 0o600))
	must(t, os.Mkdir(filepath.Join(p.dir, ".deckhand-fetch"), 0o755))
	must(t, os.Rename(filepath.Join(p.dir, "work"), filepath.Join(p.dir, ".deckhand-fetch", "work")))
	must(t, os.Mkdir(filepath.Join(home, ".deckhand-fetch"), 0o755))
	must(t, os.Rename(filepath.Join(home, ".profile"), filepath.Join(home, ".deckhand-fetch", ".profile")))
	p.continues(t, b)
	sameFiles(t, b, p)
}

// A volume without the session of the Run is refused before anything is made of it.
func TestASourceWithoutTheSession(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(b *before)
		want  string
	}{
		"an empty volume":      {func(b *before) { must(t, errors.Join(os.RemoveAll(b.state), os.Mkdir(b.state, 0o700))) }, "has no journal"},
		"no volume":            {func(b *before) { must(t, os.RemoveAll(b.state)) }, "no such file"},
		"of another Run":       {func(b *before) { b.uid = "another" }, `belongs to the Run with UID "one", not "another"`},
		"a journal of nothing": {func(b *before) { must(t, os.Truncate(filepath.Join(b.state, "journal-0001.jsonl"), 9)) }, "has no journal"},
		"without files":        {func(b *before) { must(t, os.RemoveAll(b.dir)) }, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBefore(t, nil, "one")
			tc.spoil(b)
			p := after(t, nil)
			for range 2 {
				err := p.takeOver(t.Context(), b)
				if _, is := errors.AsType[*journal.NotContinuedError](err); !is || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%v, want %s", err, tc.want)
				}
			}
			if got := names(t, p.state); name != "without files" && got != "workspace/fetch.lock" {
				t.Errorf("it has made %s", got)
			}
			if got := everything(t, p.dir); len(got) > 0 {
				t.Errorf("the workspace has %v", got)
			}
		})
	}
}

// Pipes and sockets are not files: they are left out, with a warning.
func TestWhatIsNoFileIsNotCopied(t *testing.T) {
	b := newBefore(t, nil, "one")
	must(t, syscall.Mkfifo(filepath.Join(b.dir, "work", "pipe"), 0o644))
	socket, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	must(t, err)
	defer syscall.Close(socket)
	must(t, syscall.Bind(socket, &syscall.SockaddrUnix{Name: filepath.Join(b.home, "agent.sock")}))
	p := after(t, nil).continues(t, b)
	for _, name := range []string{filepath.Join(b.dir, "work", "pipe"), filepath.Join(b.home, "agent.sock")} {
		must(t, os.Remove(name))
	}
	sameFiles(t, b, p)
	logged := strings.Join(p.logged, "\n")
	for _, want := range []string{"neither a file nor a directory nor a link: workspace/work/pipe", "link: home/agent.sock"} {
		if !strings.Contains(logged, want) {
			t.Errorf("%q is not in\n%s", want, logged)
		}
	}
}

// The size of the workspace bounds what is copied. A file of holes takes no more than it holds.
func TestFilesThatDoNotFit(t *testing.T) {
	b := newBefore(t, nil, "one")
	write(t, b.dir, map[string]string{"holes": "begin"})
	must(t, os.Truncate(filepath.Join(b.dir, "holes"), 1<<40))
	p := after(t, nil)
	must(t, workspace.TakeOver(t.Context(), p.bounded(1<<20), b.source(p)))
	if info, err := os.Stat(filepath.Join(p.dir, "holes")); err != nil || info.Size() != 1<<40 || info.Sys().(*syscall.Stat_t).Blocks > 64 {
		t.Errorf("the file with holes is %+v, %v", info.Sys(), err)
	}
	write(t, b.dir, map[string]string{"large": strings.Repeat("x", 1<<20)})
	p = after(t, nil)
	for range 2 {
		err := workspace.TakeOver(t.Context(), p.bounded(1<<20), b.source(p))
		wantRefused(t, err, "Run first cannot be continued with its files", "1048576 bytes of workspace.size", "continueFrom.workspace to Fresh")
	}
}

// bounded are the options of a workspace of a size.
func (p *place) bounded(most int64) workspace.Options {
	o := p.options()
	o.MaxBytes, o.Home = most, filepath.Join(filepath.Dir(p.dir), "home")
	return o
}

// The files are those of one repository: another one cannot be published from them.
func TestTheRepositoryOfAnotherRun(t *testing.T) {
	s := serve(t, small)
	for name, tc := range map[string]struct {
		before *workspace.Git
		now    *workspace.Git
		want   string // empty: it continues
		warns  string
	}{
		"the same":               {s.git(), s.git(), "", ""},
		"none any more":          {s.git(), nil, "", ""},
		"another":                {s.git(), &workspace.Git{URL: "https://git.example.com/other.git"}, "are of the repository " + s.URL + "/repo.git, and this Agent asks for https://git.example.com/other.git", ""},
		"one, and it had none":   {nil, s.git(), "are of no repository that can be copied", ""},
		"another branch of it":   {s.git(), &workspace.Git{URL: s.git().URL, Revision: "side"}, "", "and not with side"},
		"what is no repository":  {s.git(), &workspace.Git{URL: "nonsense"}, "names no scheme", ""},
		"none, as it had before": {nil, nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, p := newBefore(t, tc.before, "one"), after(t, tc.now)
			err := p.takeOver(t.Context(), b)
			if logged := strings.Join(p.logged, "\n"); !strings.Contains(logged, tc.warns) {
				t.Errorf("%q is not in\n%s", tc.warns, logged)
			}
			if tc.want == "" {
				must(t, err)
				sameFiles(t, b, p)
				return
			}
			wantRefused(t, err, tc.want)
		})
	}
}

// A Run that continues another moves its branch forward; a fork has its own.
func TestTheBranchOfAnotherRun(t *testing.T) {
	s := serve(t, small)
	b := newBefore(t, s.git(), "one")
	first, err := b.publish(t)
	must(t, err)
	toBranch := func(name string) func(*workspace.PublishOptions) {
		return func(o *workspace.PublishOptions) { o.Branch = name }
	}

	p := after(t, s.git()).continues(t, b)
	name, err := workspace.Branch(p.state)
	if name != branch || err != nil {
		t.Fatalf("it publishes to %q, %v", name, err)
	}
	write(t, p.dir, map[string]string{"work/more.txt": "by the second Run\n"})
	second, err := p.publish(t, toBranch(name))
	must(t, err)
	if got := run(t, s.repo, "rev-parse", branch+"^"); got != first.Commit || run(t, s.repo, "rev-parse", branch) != second.Commit {
		t.Errorf("before the second commit comes %s, want %s", got, first.Commit)
	}

	fork := after(t, s.git()).continues(t, b, func(s *workspace.Source) { s.Step = 3 })
	if name, err := workspace.Branch(fork.state); name != "" || err != nil {
		t.Errorf("the fork publishes to %q, %v", name, err)
	}
	_, err = fork.publish(t, toBranch("deckhand/fork-1"))
	must(t, err)
	if got := run(t, s.repo, "rev-parse", "deckhand/fork-1^"); got != run(t, s.repo, "rev-parse", "main") {
		t.Errorf("the fork has the commits of the other Run: %s", got)
	}

	late := after(t, s.git()).continues(t, b)
	write(t, late.dir, map[string]string{"work/late.txt": "x"})
	_, err = late.publish(t)
	wantRefused(t, err, "which neither this Run nor Run first published", "continueFrom.step")
}

// Without a branch of the Run before, or with its record of before, the name is known all the same.
func TestTheBranchOfARunThatDidNotRecordIt(t *testing.T) {
	s := serve(t, small)
	b := newBefore(t, s.git(), "one")
	if name, err := workspace.Branch(after(t, s.git()).continues(t, b).state); name != "" || err != nil {
		t.Errorf("nothing was published, and it publishes to %q, %v", name, err)
	}
	write(t, b.state, map[string]string{"workspace/published.json": `{"version":1,"commits":["0123"]}`})
	if name, err := workspace.Branch(after(t, s.git()).continues(t, b).state); name != "deckhand/first" || err != nil {
		t.Errorf("it publishes to %q, %v", name, err)
	}
}
