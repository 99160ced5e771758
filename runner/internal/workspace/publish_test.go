package workspace_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace"
)

func TestPublishMakesOneCommitOfTheFiles(t *testing.T) {
	s, p := fetched(t)
	write(t, p.dir, map[string]string{
		"README.md":             "changed\n",
		"new/deep/file.txt":     "a\r\nb\r\n",
		"tool*":                 "#!/bin/sh\n",
		"kept.log":              "changed, for it is tracked\n",
		"build/kept":            "changed too\n",
		"build/made.o":          "ignored\n",
		"x.log":                 "ignored\n",
		"new/node_modules/a/b":  "ignored\n",
		"abroad":                "-> /etc/passwd",
		"new/near":              "-> ../README.md",
		".gitignore":            "*.log\n/build/\nnode_modules\nsecret.txt\n",
		"secret.txt":            "ignored only by the model's own rules, so published\n",
		"ümläut \"quoted\".txt": "name\n",
	})
	must(t, os.RemoveAll(filepath.Join(p.dir, "old")))
	must(t, os.Chmod(filepath.Join(p.dir, "run.sh"), 0o644))
	must(t, os.Mkdir(filepath.Join(p.dir, "hollow"), 0o755))
	run(t, p.dir, "commit", "-aqm", "the model's own") // is squashed

	got, err := p.publish(t)
	must(t, err)
	if got.Branch != branch || got.Unchanged || got.Commit != run(t, s.repo, "rev-parse", branch) {
		t.Errorf("published %+v", got)
	}
	want := `M .gitignore
M README.md
A abroad
M build/kept
M kept.log
A new/deep/file.txt
A new/near
D old/gone.txt
M run.sh
A secret.txt
A tool
A ümläut "quoted".txt`
	diff := run(t, s.repo, "-c", "core.quotePath=false", "diff", "-z", "--name-status", "--no-renames", "main", branch)
	fields := strings.Split(strings.TrimRight(diff, "\x00"), "\x00")
	var lines []string
	for i := 0; i+1 < len(fields); i += 2 {
		lines = append(lines, fields[i]+" "+fields[i+1])
	}
	if text := strings.Join(lines, "\n"); text != want || got.Files != 12 {
		t.Errorf("%d files differ:\n%s\nwant\n%s", got.Files, text, want)
	}
	listed := s.listing(t, branch)
	for _, line := range []string{"100755 tool", "120000 abroad", "120000 new/near", "100644 run.sh", "100644 crlf.txt"} {
		if !strings.Contains(listed+"\n", line+"\n") {
			t.Errorf("%q is not in\n%s", line, listed)
		}
	}
	if text := run(t, s.repo, "show", branch+":abroad"); text != "/etc/passwd" {
		t.Errorf("the link holds %q", text)
	}
	if text := run(t, s.repo, "cat-file", "-s", branch+":new/deep/file.txt"); text != "6" {
		t.Errorf("the file has %s bytes, want 6: they are published as they are", text)
	}
	if text := run(t, s.repo, "log", "--format=%an|%ae|%cn|%aI|%s|%P", "-1", branch); text != "Deckhand|deckhand@acme.com|Deckhand|2026-01-01T12:00:00+00:00|Fix the bug|"+run(t, s.repo, "rev-parse", "main") {
		t.Errorf("the commit is %s", text)
	}
	run(t, s.repo, "fsck", "--strict")
}

func TestNothingChangedIsNotPublished(t *testing.T) {
	s, p := fetched(t)
	write(t, p.dir, map[string]string{"x.log": "ignored", ".git/x": "the model's"})
	must(t, os.Chtimes(filepath.Join(p.dir, "README.md"), noon, noon))
	before := len(s.asked)
	got, err := p.publish(t)
	must(t, err)
	if got != (workspace.Published{Unchanged: true}) || len(s.asked) != before {
		t.Errorf("published %+v, asked %v", got, s.asked[before:])
	}
}

func TestEverythingDeletedIsPublished(t *testing.T) {
	s, p := fetched(t)
	entries, err := os.ReadDir(p.dir)
	must(t, err)
	for _, e := range entries {
		must(t, os.RemoveAll(filepath.Join(p.dir, e.Name())))
	}
	_, err = p.publish(t)
	must(t, err)
	if got := s.listing(t, branch); got != "" {
		t.Errorf("left: %s", got)
	}
}

func TestPublishingTwiceMakesOneCommit(t *testing.T) {
	s, p := fetched(t)
	write(t, p.dir, map[string]string{"new": "x"})
	first, err := p.publish(t)
	must(t, err)
	second, err := p.publish(t, func(o *workspace.PublishOptions) { o.Author.When = noon.Add(time.Hour) })
	must(t, err)
	if first != second || run(t, s.repo, "rev-list", "--count", "main.."+branch) != "1" {
		t.Errorf("published %+v, then %+v", first, second)
	}
}

// The server takes the push, and its answer is lost.
func TestALostAnswerMakesNoSecondCommit(t *testing.T) {
	s, p := fetched(t)
	write(t, p.dir, map[string]string{"new": "x"})
	lose := true
	s.wrapper = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !lose || r.Method != http.MethodPost {
				next.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		})
	}
	_, err := p.publish(t)
	if _, refused := errors.AsType[*workspace.RefusedError](err); err == nil || refused {
		t.Fatalf("got error %v, want one that may pass", err)
	}
	clean(t, err.Error())
	lose = false
	got, err := p.publish(t, func(o *workspace.PublishOptions) { o.Author.When = noon.Add(time.Hour) })
	must(t, err)
	if got.Commit != run(t, s.repo, "rev-parse", branch) || run(t, s.repo, "rev-list", "--count", "main.."+branch) != "1" || s.pushed != 1 {
		t.Errorf("published %+v in %d pushes", got, s.pushed)
	}
}

func TestMoreWorkMovesTheBranchForward(t *testing.T) {
	s, p := fetched(t)
	write(t, p.dir, map[string]string{"new": "x"})
	first, err := p.publish(t)
	must(t, err)
	s.commit(t, map[string]string{"README.md": "meanwhile on main"})
	write(t, p.dir, map[string]string{"new": "y", "newer": "z"})
	second, err := p.publish(t)
	must(t, err)
	if got := run(t, s.repo, "rev-parse", branch+"^"); got != first.Commit || second.Files != 2 {
		t.Errorf("%+v comes after %s, want %s", second, got, first.Commit)
	}
	for name := range map[string]bool{"new": true, "newer": true} {
		must(t, os.Remove(filepath.Join(p.dir, name)))
	}
	third, err := p.publish(t) // all undone: the branch says so
	must(t, err)
	if third.Files != 0 || third.Unchanged || run(t, s.repo, "diff", branch+"~3", branch) != "" {
		t.Errorf("published %+v", third)
	}
	run(t, s.repo, "branch", "-D", branch)
	write(t, p.dir, map[string]string{"new": "y"})
	fourth, err := p.publish(t)
	must(t, err)
	if got := run(t, s.repo, "rev-list", "--count", "main^.."+branch); got != "1" {
		t.Errorf("%+v has %s commits after what was fetched, want 1: the branch was deleted", fourth, got)
	}
}

func TestSomebodyElsesBranchIsLeftAlone(t *testing.T) {
	s, p := fetched(t)
	write(t, p.dir, map[string]string{"new": "x"})
	run(t, s.repo, "branch", branch, "main")
	_, err := p.publish(t)
	wantRefused(t, err, `The branch "deckhand/fix-1" is there already`, "which this Run did not publish")
	run(t, s.repo, "branch", "-D", branch)
	_, err = p.publish(t)
	must(t, err)
	theirs := s.commit(t, map[string]string{"README.md": "theirs"})
	run(t, s.repo, "update-ref", "refs/heads/"+branch, theirs)
	write(t, p.dir, map[string]string{"new": "y"})
	_, err = p.publish(t)
	wantRefused(t, err, theirs)
	if got := run(t, s.repo, "rev-parse", branch); got != theirs {
		t.Errorf("the branch was moved to %s", got)
	}
}

// Between the server's list and the push somebody makes the branch.
func TestABranchThatIsMadeMeanwhileIsLeftAlone(t *testing.T) {
	s, p := fetched(t)
	write(t, p.dir, map[string]string{"new": "x"})
	s.wrapper = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				run(t, s.repo, "branch", branch, "main")
			}
			next.ServeHTTP(w, r)
		})
	}
	_, err := p.publish(t)
	wantRefused(t, err, "did not take the branch")
	if run(t, s.repo, "rev-parse", branch) != run(t, s.repo, "rev-parse", "main") {
		t.Error("the branch was moved")
	}
}

func TestTheMessageOfAServerHookIsReported(t *testing.T) {
	s, p := fetched(t)
	write(t, s.repo, map[string]string{"hooks/pre-receive*": "#!/bin/sh\necho 'Branches need a \033[31mticket\033[0m' >&2\nexit 1\n"})
	write(t, p.dir, map[string]string{"new": "x"})
	_, err := p.publish(t)
	wantRefused(t, err, "pre-receive hook declined", "Branches need a", "ticket")
	if strings.Contains(err.Error(), "\033") {
		t.Errorf("%q has control characters", err)
	}
}

func TestPublishIsRefused(t *testing.T) {
	s, p := fetched(t)
	write(t, p.dir, map[string]string{"new": strings.Repeat("x", 1000), "new2": strings.Repeat("y", 1000)})
	cases := map[string]struct {
		change func(*workspace.PublishOptions)
		says   string
	}{
		"too many bytes":       {func(o *workspace.PublishOptions) { o.MaxBytes = 1999 }, "more than 1999 bytes together"},
		"too many files":       {func(o *workspace.PublishOptions) { o.MaxFiles = 14 }, "more than 14 files to publish"},
		"too many names":       {func(o *workspace.PublishOptions) { o.MaxFiles = 1 }, "more than"},
		"another URL":          {func(o *workspace.PublishOptions) { o.Git = &workspace.Git{URL: s.URL + "/other.git"} }, "set the URL back"},
		"a name of no branch":  {func(o *workspace.PublishOptions) { o.Branch = "a..b" }, "no name that git allows"},
		"no repository":        {func(o *workspace.PublishOptions) { o.Git = nil }, "has no git repository"},
		"nothing was fetched":  {func(o *workspace.PublishOptions) { o.State = t.TempDir() }, "never fetched"},
		"a token that is gone": {func(o *workspace.PublishOptions) { o.Git = &workspace.Git{URL: o.Git.URL} }, "asks for credentials"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := p.publish(t, tc.change)
			wantRefused(t, err, tc.says)
		})
	}
	if s.pushed != 0 {
		t.Errorf("%d pushes", s.pushed)
	}
	_, err := p.publish(t, func(o *workspace.PublishOptions) { o.MaxBytes, o.MaxFiles = 2000, 15 })
	must(t, err)
}

// A large file that is tracked and unchanged counts for nothing.
func TestOnlyWhatIsNewCounts(t *testing.T) {
	s := serve(t, map[string]string{"large": strings.Repeat("x", 100_000)})
	p := newPlace(t, s.git())
	p.fetch(t)
	write(t, p.dir, map[string]string{"new": "x"})
	_, err := p.publish(t, func(o *workspace.PublishOptions) { o.MaxBytes = 10 })
	must(t, err)
	write(t, p.dir, map[string]string{"large": strings.Repeat("y", 100_000)}) // of the same size
	_, err = p.publish(t, func(o *workspace.PublishOptions) { o.MaxBytes = 10 })
	wantRefused(t, err, "more than 10 bytes")
}

func TestLargeAndManyFilesArrive(t *testing.T) {
	s := serve(t, seed)
	g := s.git()
	g.Depth = 1
	p := newPlace(t, g)
	p.fetch(t)
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("many/%d/%d", i%7, i)] = fmt.Sprint("content ", i)
	}
	noise := make([]byte, 5<<20)
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x = x*1664525 + 1013904223
		noise[i] = byte(x >> 24)
	}
	files["large"], files["copy"] = string(noise), string(noise)
	write(t, p.dir, files)
	got, err := p.publish(t)
	must(t, err)
	if got.Files != 302 {
		t.Errorf("%d files, want 302", got.Files)
	}
	run(t, s.repo, "fsck", "--strict")
	out := t.TempDir()
	run(t, out, "clone", "-q", "-b", branch, s.repo, "x")
	for name, want := range files {
		data, err := os.ReadFile(filepath.Join(out, "x", name))
		if err != nil || string(data) != want {
			t.Errorf("%s has %d bytes (error %v), want %d", name, len(data), err, len(want))
		}
	}
}

// What was left by a process that died while it wrote objects does no harm.
func TestHalfWrittenObjectsAreWrittenAgain(t *testing.T) {
	s, p := fetched(t)
	write(t, p.dir, map[string]string{"new": "x"})
	run(t, s.repo, "config", "receive.denyCurrentBranch", "ignore")
	write(t, s.repo, map[string]string{"hooks/pre-receive*": "#!/bin/sh\nexit 1\n"})
	_, err := p.publish(t)
	wantRefused(t, err, "did not take")
	objects := filepath.Join(p.state, "workspace", "git", "objects")
	loose, err := filepath.Glob(objects + "/??/*")
	must(t, err)
	for _, name := range loose {
		must(t, os.Chmod(name, 0o600))
		must(t, os.Truncate(name, 3))
	}
	must(t, os.WriteFile(objects+"/tmp_obj_left", nil, 0o600))
	must(t, os.Remove(filepath.Join(s.repo, "hooks/pre-receive")))
	_, err = p.publish(t)
	must(t, err)
	if left, _ := filepath.Glob(objects + "/tmp_*"); len(loose) != 3 || left != nil {
		t.Errorf("%d loose objects, left %v", len(loose), left)
	}
}
