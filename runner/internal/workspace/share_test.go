package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace"
)

// A shared is Runs that have one workspace, each with a state of its own.
type shared struct {
	dir, origin, base string
	runs              int
}

func newShared(t *testing.T) *shared {
	t.Helper()
	base := t.TempDir()
	s := &shared{dir: filepath.Join(base, "workspace"), origin: filepath.Join(base, "origin"), base: base}
	must(t, os.Mkdir(s.dir, 0o775))
	return s
}

// run is another Run of it.
func (s *shared) run(git *workspace.Git) *place {
	s.runs++
	return &place{dir: s.dir, state: filepath.Join(s.base, "state", string(rune('a'+s.runs))), origin: s.origin, git: git}
}

// clones is how often the server was asked for commits.
func (s *server) clones() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, line := range s.asked {
		if strings.HasPrefix(line, "POST ") && strings.HasSuffix(line, "/git-upload-pack") {
			n++
		}
	}
	return n
}

// tree is every file of a directory, but those of .git, with what it holds.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	must(t, filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == ".git" {
			return filepath.SkipDir
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		data, readErr := os.ReadFile(name)
		out[rel] = string(data)
		return errors.Join(err, readErr)
	}))
	return out
}

var small = map[string]string{"README.md": "hello\n", "src/main.go": "package main\n"}

// Of several Runs that begin at once one fetches, and all find the same, with the
// files that each of them brings.
func TestRunsThatBeginAtOnceFetchOnce(t *testing.T) {
	s, at := serve(t, small), newShared(t)
	given := configMap(t, map[string]string{"given": "by all"})
	var all sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		p := at.run(s.git())
		o := p.options(workspace.Files{Dir: configMap(t, map[string]string{string(rune('a' + i)): "mine"}), Path: "from"}, workspace.Files{Dir: given, Path: "src"})
		o.Log = nil
		all.Go(func() { errs[i] = workspace.Fetch(t.Context(), o) })
	}
	all.Wait()
	must(t, errors.Join(errs...))
	want := map[string]string{"README.md": "hello\n", "src/main.go": "package main\n", "src/given": "by all"}
	for i := range errs {
		want["from/"+string(rune('a'+i))] = "mine"
	}
	if diff := cmp.Diff(want, tree(t, at.dir)); diff != "" {
		t.Errorf("the workspace -want +got:\n%s", diff)
	}
	if n := s.clones(); n != 1 {
		t.Errorf("the repository was fetched %d times", n)
	}
	got, err := at.run(s.git()).joined(t).publish(t)
	must(t, err)
	if !got.Unchanged {
		t.Errorf("what was placed is published as work: %+v", got)
	}
}

func (p *place) joined(t *testing.T) *place {
	t.Helper()
	p.fetch(t)
	return p
}

// The repository is there once; who asks for another is told so.
func TestALaterRunFindsTheRepositoryThere(t *testing.T) {
	s := serve(t, small)
	head := run(t, s.repo, "rev-parse", "main")
	run(t, s.repo, "branch", "side", "main")
	cases := map[string]struct {
		first, later func(*workspace.Git)
		refused      string
	}{
		"the same":                               {nil, nil, ""},
		"the same, written in another way":       {nil, func(g *workspace.Git) { g.URL = strings.Replace(g.URL, "http://", "HTTP://", 1) }, ""},
		"the same, and other credentials":        {nil, func(g *workspace.Git) { g.Credentials = "" }, ""},
		"the branch that the default is":         {nil, func(g *workspace.Git) { g.Revision = "main" }, ""},
		"the commit that it is at":               {func(g *workspace.Git) { g.Revision = "side" }, func(g *workspace.Git) { g.Revision = head }, ""},
		"no repository":                          {nil, func(g *workspace.Git) { *g = workspace.Git{} }, ""},
		"another repository":                     {nil, func(g *workspace.Git) { g.URL = "https://git.example.com/other.git" }, "has the repository " + s.URL + "/repo.git at its default branch already, which another Run fetched; this one asks for https://git.example.com/other.git"},
		"another branch":                         {nil, func(g *workspace.Git) { g.Revision = "side" }, "this one asks for " + s.URL + "/repo.git at side"},
		"the default branch, and it was another": {func(g *workspace.Git) { g.Revision = "side" }, nil, "give the node a workspace of its own"},
		"what names no repository":               {nil, func(g *workspace.Git) { g.URL = "nonsense" }, "names no scheme"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at, first, later := newShared(t), s.git(), s.git()
			for g, change := range map[*workspace.Git]func(*workspace.Git){first: tc.first, later: tc.later} {
				if change != nil {
					change(g)
				}
			}
			if later.URL == "" {
				later = nil
			}
			at.run(first).fetch(t)
			write(t, at.dir, map[string]string{"README.md": "work"})
			before := s.clones()
			err := workspace.Fetch(t.Context(), at.run(later).options())
			if tc.refused != "" {
				wantRefused(t, err, tc.refused)
			} else {
				must(t, err)
			}
			if got := tree(t, at.dir); got["README.md"] != "work" || len(got) != len(small) || s.clones() != before {
				t.Errorf("the workspace is %v; %d more clones", got, s.clones()-before)
			}
		})
	}
}

// The last of a branch publishes what all of them did; another publishes for
// itself, on a branch of its own.
func TestALaterRunPublishesTheWorkOfAll(t *testing.T) {
	s, at := serve(t, small), newShared(t)
	first := at.run(s.git()).joined(t)
	write(t, at.dir, map[string]string{"plan": "by the first"})
	later := at.run(s.git()).joined(t)
	write(t, at.dir, map[string]string{"src/main.go": "by the later", ".deckhand-fetch/half": "of one that died"})
	got, err := later.publish(t)
	must(t, err)
	if diff := run(t, s.repo, "diff", "--name-status", "main", got.Commit); diff != "A\tplan\nM\tsrc/main.go" {
		t.Errorf("published %q", diff)
	}
	_, err = first.publish(t)
	wantRefused(t, err, "which this Run did not publish")
	own, err := first.publish(t, func(o *workspace.PublishOptions) { o.Branch = "deckhand/own" })
	must(t, err)
	if own.Commit == "" || own.Branch != "deckhand/own" {
		t.Errorf("published %+v", own)
	}
}

// Runs of one workspace may end, and publish, at the same time.
func TestRunsThatEndAtOncePublishEach(t *testing.T) {
	s, at := serve(t, small), newShared(t)
	places := make([]*place, 5)
	for i := range places {
		places[i] = at.run(s.git()).joined(t)
	}
	for i := range 50 {
		write(t, at.dir, map[string]string{"made/" + string(rune('A'+i)): strings.Repeat("x", i)})
	}
	var all sync.WaitGroup
	for i, p := range places {
		all.Go(func() {
			_, err := p.publish(t, func(o *workspace.PublishOptions) { o.Branch = "deckhand/" + string(rune('a'+i)) })
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := run(t, s.repo, "for-each-ref", "--format=%(refname:short)", "refs/heads/deckhand"); strings.Count(got, "\n") != 4 {
		t.Errorf("branches %q", got)
	}
	run(t, s.repo, "fsck", "--strict")
}

// Files of a ConfigMap come to where nothing is; what is there is somebody's work.
func TestFilesDoNotOverwriteTheWorkOfAnother(t *testing.T) {
	at := newShared(t)
	write(t, at.dir, map[string]string{"rules/mine": "work", "file": "work", "link": "-> rules", "target": "work"})
	cases := []struct{ path, name string }{
		{"rules", "mine"}, {"rules", "new"}, {"deep/er", "new"}, {"file", "below"}, {"link", "through"}, {".", "target"}, {".", "top"},
	}
	var files []workspace.Files
	for _, c := range cases {
		files = append(files, workspace.Files{Dir: configMap(t, map[string]string{c.name: "given"}), Path: c.path})
	}
	p := at.run(nil)
	// One of another ConfigMap, of the same name.
	files = append(files, workspace.Files{Dir: configMap(t, map[string]string{"top": "given again"}), Path: "."})
	must(t, workspace.Fetch(t.Context(), p.options(files...)))
	want := map[string]string{"rules/mine": "work", "rules/new": "given", "deep/er/new": "given", "file": "work", "target": "work", "top": "given again"}
	if diff := cmp.Diff(want, tree(t, at.dir)); diff != "" {
		t.Errorf("the workspace -want +got:\n%s", diff)
	}
	must(t, os.Remove(filepath.Join(at.dir, "top")))
	must(t, workspace.Fetch(t.Context(), p.options(files...)))
	if _, err := os.Lstat(filepath.Join(at.dir, "top")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a later attempt put back what the work had removed: %v", err)
	}
}

// A repository may come after files did, where it has room; else it is refused,
// and nothing changes for the others.
func TestARepositoryThatComesLater(t *testing.T) {
	s := serve(t, small)
	for name, tc := range map[string]struct {
		there   string
		refused string
	}{
		"where it has room":     {"plan", ""},
		"where it has none":     {"src/plan", `has "src" already`},
		"where its own name is": {".git/config", `has ".git" already`},
	} {
		t.Run(name, func(t *testing.T) {
			at := newShared(t)
			given := workspace.Files{Dir: configMap(t, map[string]string{"given": "x"}), Path: "from/one"}
			must(t, workspace.Fetch(t.Context(), at.run(nil).options(given)))
			write(t, at.dir, map[string]string{tc.there: "work"})
			later := at.run(s.git())
			err := workspace.Fetch(t.Context(), later.options())
			if tc.refused != "" {
				wantRefused(t, err, tc.refused)
				if _, err := os.Lstat(filepath.Join(at.dir, ".deckhand-fetch")); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("what was put together is left: %v", err)
				}
				must(t, workspace.Fetch(t.Context(), at.run(nil).options(given)))
				return
			}
			must(t, err)
			got, err := later.publish(t)
			must(t, err)
			if diff := run(t, s.repo, "diff", "--name-status", "main", got.Commit); diff != "A\tplan" {
				t.Errorf("published %q", diff)
			}
		})
	}
}

// A Run tells of the files that came after it began.
func TestArtifactsAreThoseOfTheRun(t *testing.T) {
	s, at := serve(t, small), newShared(t)
	first := at.run(s.git()).joined(t)
	writeAt(t, first, "plan", "by the first", noon.AddDate(10, 0, 0))
	given := workspace.Files{Dir: configMap(t, map[string]string{"given": "x"}), Path: "."}
	later := at.run(s.git())
	must(t, workspace.Fetch(t.Context(), later.options(given)))
	writeAt(t, later, "made", "by the later", noon.AddDate(11, 0, 0))
	files, _ := artifacts(t, later)
	if len(files) != 1 || files[0].Path != "/workspace/made" {
		t.Errorf("the later Run made %v", files)
	}
}
