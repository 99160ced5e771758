package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace"
)

// pointer is what Git LFS has in place of a content.
func pointer(digit string) string {
	return "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat(digit, 64) + "\nsize 12345\n"
}

// fetchedWithLFS is a workspace of a repository that uses Git LFS.
func fetchedWithLFS(t *testing.T) (*server, *place) {
	t.Helper()
	s := serve(t, map[string]string{
		".gitattributes":     "[attr]big filter=lfs diff=lfs merge=lfs -text\n*.png big\nsmall.png -filter\n",
		"logo.png":           pointer("a"),
		"img/photo.png":      pointer("b"),
		"img/.gitattributes": "*.raw filter=lfs\n",
		"small.png":          "not of Git LFS",
		"pointer.txt":        pointer("c"),
		"plain.png":          "PNG, added without Git LFS",
		"README.md":          "hello\n",
	})
	p := newPlace(t, s.git())
	p.fetch(t)
	return s, p
}

func TestPointersOfGitLFSAreNamed(t *testing.T) {
	_, p := fetchedWithLFS(t)
	const want = "The content of files of Git LFS is not fetched. A pointer, a short text, is in its place: img/photo.png, logo.png"
	if log := strings.Join(p.logged, "\n"); !strings.Contains(log, want+"\n") {
		t.Errorf("logged %s", log)
	}
	missing, err := workspace.Missing(p.state)
	must(t, err)
	if diff := cmp.Diff([]string{want}, missing); diff != "" {
		t.Errorf("Missing() -want +got:\n%s", diff)
	}
}

func TestWhatIsMissingIsBounded(t *testing.T) {
	files := map[string]string{".gitattributes": "*.bin filter=lfs\n"}
	for i := range 30 {
		files[fmt.Sprintf("dir, %02d/%s.bin", i, strings.Repeat("x", 200))] = pointer("a")
	}
	s := serve(t, files)
	for i := range 12 {
		run(t, s.work, "update-index", "--add", "--cacheinfo", "160000,"+run(t, s.repo, "rev-parse", "main")+fmt.Sprintf(",sub%02d", i))
	}
	run(t, s.work, "commit", "-q", "-m", "submodules")
	run(t, s.work, "push", "-q", s.repo, "HEAD:refs/heads/main")
	p := newPlace(t, s.git())
	p.fetch(t)
	missing, err := workspace.Missing(p.state)
	must(t, err)
	text := strings.Join(missing, "\n")
	if len(text) > 1200 || len(missing) != 7 || !strings.Contains(text, `: "dir, 00/x`) || !strings.Contains(text, " and 28 more\n") || !strings.HasSuffix(text, "\n7 more submodules are not fetched") {
		t.Errorf("Missing() says in %d lines:\n%s", len(missing), text)
	}
}

// A record of an earlier version says of nothing that it is missing.
func TestNothingIsMissingWithoutARecord(t *testing.T) {
	_, p := fetched(t)
	for _, state := range []string{t.TempDir(), p.state} {
		if missing, err := workspace.Missing(state); len(missing) > 0 || err != nil {
			t.Errorf("Missing() = %q, %v", missing, err)
		}
	}
}

func TestChangedFilesOfGitLFSAreLeftOutOfTheCommit(t *testing.T) {
	cases := map[string]struct {
		write  map[string]string
		remove []string
		want   string // what differs on the branch
		left   string
	}{
		"a new file": {
			write: map[string]string{"new.png": "PNG", "notes.md": "x"}, want: "A notes.md", left: "new.png",
		},
		"a changed file": {
			write: map[string]string{"logo.png": "PNG", "notes.md": "x"}, want: "A notes.md", left: "logo.png",
		},
		"a pointer that was edited": {
			write: map[string]string{"logo.png": pointer("d"), "notes.md": "x"}, want: "A notes.md", left: "logo.png",
		},
		"a pointer that was copied": {
			write: map[string]string{"copy.png": pointer("a")}, want: "A copy.png",
		},
		"a pointer that was moved": {
			write: map[string]string{"brand/logo.png": pointer("a")}, remove: []string{"logo.png"}, want: "A brand/logo.png\nD logo.png",
		},
		"a pointer of no file of Git LFS that was copied": {
			write: map[string]string{"copy.png": pointer("c")}, want: "A copy.png",
		},
		"a pointer that was deleted": {remove: []string{"img/photo.png"}, want: "D img/photo.png"},
		"a pointer that became executable": {
			write: map[string]string{"logo.png*": pointer("a")}, want: "M logo.png",
		},
		"an empty file": {write: map[string]string{"empty.png": ""}, want: "A empty.png"},
		"a link":        {write: map[string]string{"link.png": "-> logo.png"}, want: "A link.png"},
		"a file with an exception": {
			write: map[string]string{"small.png": "changed"}, want: "M small.png",
		},
		"a file by the attributes of its directory": {
			write: map[string]string{"img/a.raw": "RAW", "a.raw": "RAW"}, want: "A a.raw", left: "img/a.raw",
		},
		"files in a directory of their own": {
			write: map[string]string{"new/deep/a.png": "1", "new/b.png": "2", "notes.md": "x"}, want: "A notes.md", left: "new/b.png, new/deep/a.png",
		},
		"a file that was added without Git LFS": {
			write: map[string]string{"plain.png": "changed", "notes.md": "x"}, want: "A notes.md", left: "plain.png",
		},
		"a file of which the agent says that it is none of Git LFS": {
			write: map[string]string{".gitattributes": "img/* filter=lfs\n", "logo.png": "PNG"}, want: "M .gitattributes\nM logo.png",
		},
		"a file of which the agent says that it is one": {
			write: map[string]string{"data/.gitattributes": "*.csv filter=lfs\n", "data/a.csv": "1"}, want: "A data/.gitattributes", left: "data/a.csv",
		},
		"more than fit": {
			write: map[string]string{strings.Repeat("x", 150) + "/a b.png": "1", "b.png": "2", "c.png": "3", "notes.md": "x"},
			want:  "A notes.md", left: "b.png, c.png and 1 more",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, p := fetchedWithLFS(t)
			for _, name := range tc.remove {
				must(t, os.Remove(filepath.Join(p.dir, name)))
			}
			write(t, p.dir, tc.write)
			got, err := p.publish(t)
			must(t, err)
			diff := strings.ReplaceAll(run(t, s.repo, "diff", "--name-status", "--no-renames", "main", got.Commit), "\t", " ")
			if diff != tc.want || got.LeftOut != tc.left || got.Files != strings.Count(tc.want, "\n")+1 {
				t.Errorf("published %+v, which differs in\n%s\nwant\n%s\nleft out: %s", got, diff, tc.want, tc.left)
			}
			run(t, s.repo, "fsck", "--strict")
			again, err := p.publish(t)
			must(t, err)
			if again != got {
				t.Errorf("published %+v, then %+v", got, again)
			}
		})
	}
}

func TestOnlyFilesOfGitLFSArePublishedAsNothing(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"a new file":     {"new.png": "PNG"},
		"a changed file": {"logo.png": "PNG"},
		"in a directory": {"new/deep/new.png": "PNG"},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := fetchedWithLFS(t)
			write(t, p.dir, files)
			_, err := p.publish(t)
			for name := range files {
				wantRefused(t, err, "Only files of Git LFS (filter=lfs in .gitattributes) were changed, which cannot be published: "+name)
			}
			if s.pushed > 0 {
				t.Error("it was pushed")
			}
		})
	}
}
