package disk

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

func TestModeStays(t *testing.T) {
	g := newFixture(t)
	for _, mode := range []os.FileMode{0o600, 0o664, 0o755, 0o777} {
		must(t, os.WriteFile(g.at("f"), []byte("a"), 0o600))
		must(t, os.Chmod(g.at("f"), mode))
		_, err := g.Edit(t.Context(), "f", backend.Edit{Old: "a", New: "b"})
		must(t, err)
		_, err = g.Write(t.Context(), "f", []byte("c"), backend.Any)
		must(t, err)
		info, err := os.Stat(g.at("f"))
		must(t, err)
		if got := info.Mode().Perm(); got != mode {
			t.Errorf("the mode is %v, want %v", got, mode)
		}
	}
}

func TestReadOnlyFilesAreNotReplaced(t *testing.T) {
	g := newFixture(t)
	must(t, os.WriteFile(g.at("f"), []byte("content"), 0o444))
	for _, op := range []string{"Write", "Edit"} {
		_, err := g.attempts("f")[op](t.Context())
		wantKind(t, op, err, backend.ErrDenied)
	}
}

func TestUnfinishedFilesAreInvisibleAndSwept(t *testing.T) {
	g := newFixture(t)
	must(t, os.MkdirAll(g.at(TempDir), 0o755))
	must(t, os.WriteFile(g.at(TempDir+"/half"), []byte("content"), 0o644))
	must(t, os.WriteFile(g.at(tempPrefix+"half"), []byte("content"), 0o644))
	_, err := g.Write(t.Context(), "whole", []byte("content"), backend.Any)
	must(t, err)

	infos, err := g.List(t.Context(), ".")
	must(t, err)
	found, err := g.Glob(t.Context(), "**", "", nil)
	must(t, err)
	said, err := g.Glob(t.Context(), TempDir+"/*", "", nil)
	must(t, err)
	matches, err := g.Grep(t.Context(), backend.Query{Pattern: "content"})
	must(t, err)
	got := []string{"list"}
	for _, i := range infos {
		got = append(got, i.Path)
	}
	got = append(got, "glob")
	for _, i := range append(found.Items, said.Items...) {
		got = append(got, i.Path)
	}
	got = append(got, "grep")
	for _, m := range matches.Items {
		got = append(got, m.Path)
	}
	if want := "list whole glob whole grep whole"; strings.Join(got, " ") != want {
		t.Errorf("visible: %v, want %s", got, want)
	}

	open(t, g.dir)
	if _, err := os.Lstat(g.at(TempDir)); !os.IsNotExist(err) {
		t.Errorf("after Open %s is still there, error %v", TempDir, err)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	files := backend.New(d, noon)
	_, err := files.Write(t.Context(), "a/b/f", []byte("x"), backend.Any)
	must(t, err)
	_, err = files.Write(t.Context(), "a/b", []byte("x"), backend.Any)
	wantKind(t, "Write over a directory", err, backend.ErrIsDir)
	must(t, d.Close())
	d.tree, err = openTree(dir) // for the cleanup to close
	must(t, err)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "a" {
		t.Errorf("after Close there is %v (error %v), want the directory written", entries, err)
	}
}

// Whatever stands where TempDir should be, writing works and stays inside.
func TestWritesWithoutTempDir(t *testing.T) {
	arrangements := map[string]func(t *testing.T, g fixture){
		"a file":                         func(t *testing.T, g fixture) { must(t, os.WriteFile(g.at(TempDir), nil, 0o644)) },
		"a link to the outside":          func(t *testing.T, g fixture) { must(t, os.Symlink(g.outside, g.at(TempDir))) },
		"a link to nothing":              func(t *testing.T, g fixture) { must(t, os.Symlink("none", g.at(TempDir))) },
		"a pipe":                         func(t *testing.T, g fixture) { must(t, syscall.Mkfifo(g.at(TempDir), 0o644)) },
		"a link to a directory, inside":  func(t *testing.T, g fixture) { must(t, os.Symlink(".", g.at(TempDir))) },
		"a directory with no permission": func(t *testing.T, g fixture) { must(t, os.Mkdir(g.at(TempDir), 0)) },
	}
	for name, arrange := range arrangements {
		t.Run(name, func(t *testing.T) {
			g := newFixture(t)
			arrange(t, g)
			_, err := g.Write(t.Context(), "d/f", []byte("x"), backend.Any)
			must(t, err)
			entries, err := os.ReadDir(g.at("d"))
			if err != nil || len(entries) != 1 || entries[0].Name() != "f" {
				t.Errorf("beside the file there is %v, error %v", entries, err)
			}
		})
	}
}

// A full disk is told as such, and the file stays as it was.
func TestFullDisk(t *testing.T) {
	small := t.TempDir()
	if err := syscall.Mount("none", small, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("making a small filesystem needs root: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(small, syscall.MNT_DETACH)) })
	files := backend.New(open(t, small), noon)
	_, err := files.Write(t.Context(), "f", []byte("short"), backend.Any)
	must(t, err)
	_, err = files.Write(t.Context(), "f", make([]byte, 128<<10), backend.Any)
	wantKind(t, "Write to a full disk", err, backend.ErrNoSpace)
	page, err := files.Read(t.Context(), "f", backend.Window{Limit: 1})
	if err != nil || page.Lines[0] != "short" {
		t.Errorf("after a failed write the file has %v, error %v", page.Lines, err)
	}
	entries, err := os.ReadDir(filepath.Join(small, TempDir))
	if err != nil || len(entries) != 0 {
		t.Errorf("a failed write left %v, error %v", entries, err)
	}
}
