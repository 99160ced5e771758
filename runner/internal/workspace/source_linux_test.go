package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A full disk ends the Run with what to do, and a larger one is filled from the beginning.
func TestACopyToAFullDisk(t *testing.T) {
	b := newBefore(t, nil, "one")
	write(t, b.dir, map[string]string{"large": strings.Repeat("x", 256<<10)})
	p := after(t, nil)
	if err := syscall.Mount("none", p.dir, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("making a small file system needs root: %v", err)
	}
	mounted := true
	defer func() {
		if mounted {
			must(t, syscall.Unmount(p.dir, syscall.MNT_DETACH))
		}
	}()
	err := p.takeOver(t.Context(), b)
	if end, is := errors.AsType[*task.EndError](err); !is || end.Reason != task.ReasonStorageFull || !strings.Contains(end.Message, "workspace.size") || !strings.Contains(end.Message, "no space left") {
		t.Errorf("it ends with %v", err)
	}
	must(t, syscall.Unmount(p.dir, syscall.MNT_DETACH))
	mounted = false
	p.continues(t, b)
	sameFiles(t, b, p)
}

// Files of another user are copied as those of this one. Files that it may not read are not left out.
func TestFilesOfAnotherUser(t *testing.T) {
	b := newBefore(t, nil, "one")
	if err := filepath.WalkDir(filepath.Dir(b.dir), func(name string, _ fs.DirEntry, _ error) error { return os.Lchown(name, 4321, 4321) }); err != nil {
		t.Skipf("giving files to another user needs root: %v", err)
	}
	p := after(t, nil).continues(t, b)
	sameFiles(t, b, p)
	info, err := os.Stat(filepath.Join(p.dir, "work", "done.txt"))
	must(t, err)
	if got := info.Sys().(*syscall.Stat_t).Uid; int(got) != os.Getuid() {
		t.Errorf("the copy belongs to %d", got)
	}
	must(t, os.Chmod(filepath.Join(b.dir, "work", "done.txt"), 0))
	q := after(t, nil)
	must(t, os.Chmod(filepath.Dir(filepath.Dir(q.dir)), 0o755))
	for _, dir := range []string{filepath.Dir(q.dir), q.dir, filepath.Join(filepath.Dir(q.dir), "home")} {
		must(t, os.Chmod(dir, 0o777))
	}
	var refused error
	workspace.WithoutRights(t, func() { refused = q.takeOver(t.Context(), b) })
	if end, is := errors.AsType[*task.EndError](refused); !is || end.Reason != task.ReasonNothingToContinue || !strings.Contains(end.Message, "the user and the groups") {
		t.Errorf("it ends with %v", refused)
	}
}

// A user who is not root cannot remove or move what lies in a read-only directory.
func TestACopyThatWasCutBehindAReadOnlyDirectory(t *testing.T) {
	b := newBefore(t, nil, "one")
	write(t, b.dir, map[string]string{"work/deep/er/x": "y"})
	for _, dir := range []string{"work/deep/er", "work/deep", "work"} {
		must(t, os.Chmod(filepath.Join(b.dir, dir), 0o555))
	}
	const nobody = 65534
	if err := filepath.WalkDir(filepath.Dir(b.dir), func(name string, _ fs.DirEntry, _ error) error { return os.Lchown(name, nobody, nobody) }); err != nil {
		t.Skipf("giving files to another user needs root: %v", err)
	}
	for times := 0; ; times++ {
		p := after(t, nil)
		must(t, os.Chmod(filepath.Dir(filepath.Dir(p.dir)), 0o755))
		for _, dir := range []string{filepath.Dir(p.dir), p.dir, filepath.Join(filepath.Dir(p.dir), "home")} {
			must(t, os.Chmod(dir, 0o777))
		}
		var first error
		left := times
		workspace.WithoutRights(t, func() {
			if first = p.takeOver(cut{t.Context(), &left}, b); first != nil {
				p.continues(t, b)
			}
		})
		sameFiles(t, b, p)
		if first == nil {
			return
		}
	}
}
