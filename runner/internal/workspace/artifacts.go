package workspace

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/workspace/git"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// maxNames is how many names of a workspace are looked at.
	maxNames = 1_000_000
	// maxDepth is how deep its directories are followed.
	maxDepth = 200
	// dirFlags open a directory, and wait for nothing that was put in its place.
	dirFlags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_DIRECTORY
)

// A found is a file that is new or was written to.
type found struct {
	name string
	info fs.FileInfo
}

// newestFirst orders what is found: what was written last, then what is largest.
func newestFirst(a, b found) int {
	return cmp.Or(b.info.ModTime().Compare(a.info.ModTime()), cmp.Compare(b.info.Size(), a.info.Size()), strings.Compare(a.name, b.name))
}

// Artifacts are the files of the workspace that have come or were written to
// since, by whatever program: at most task.MaxFiles, the newest first, by the
// names that the model knows. More is how many there are besides, with those whose
// names cannot be shown. Links are not followed, a .git is not looked into.
func Artifacts(ctx context.Context, root *os.Root, since Manifest) (files []task.File, more int, err error) {
	var best []found
	_, err = eachFile(ctx, root, func(name string, info fs.FileInfo) {
		if since.has(name, info) {
			return
		}
		if !shown(name) {
			more++
			return
		}
		one := found{name: name, info: info}
		at, _ := slices.BinarySearchFunc(best, one, newestFirst)
		best = slices.Insert(best, at, one)
		if len(best) > task.MaxFiles {
			best = best[:task.MaxFiles]
			more++
		}
	})
	if err != nil {
		return nil, 0, fmt.Errorf("listing the workspace: %w", err)
	}
	for _, one := range best {
		files = append(files, task.File{Path: path.Join(task.Workspace, one.name), Size: one.info.Size()})
	}
	return files, more, nil
}

// shown says whether a name can be in the status as it is: not too long, and text
// of one line that a terminal may show.
func shown(name string) bool {
	return len(task.Workspace)+1+len(name) <= task.MaxPath && utf8.ValidString(name) &&
		!strings.ContainsAny(name, "\n\t") && redact.Printable(name) == name
}

// A round goes once through a workspace.
type fileWalk struct {
	root  *os.Root
	visit func(string, fs.FileInfo)
	names int
}

// eachFile visits every regular file, in no order. What cannot be read, and what
// goes meanwhile, is passed over. It says whether that was all, or more than is
// looked at.
func eachFile(ctx context.Context, root *os.Root, visit func(string, fs.FileInfo)) (whole bool, err error) {
	r := &fileWalk{root: root, visit: visit}
	err = r.directory(ctx, ".")
	return r.names < maxNames, err
}

func (r *fileWalk) directory(ctx context.Context, dir string) error {
	if strings.Count(dir, "/") > maxDepth {
		return nil
	}
	f, err := r.root.OpenFile(dir, dirFlags, 0)
	if err != nil {
		return ctx.Err()
	}
	defer f.Close()
	for name, err := range git.Names(f) {
		if err != nil {
			break // what cannot be read is passed over
		}
		if r.names++; r.names >= maxNames {
			break
		}
		if err := r.entry(ctx, path.Join(dir, name)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (r *fileWalk) entry(ctx context.Context, name string) error {
	info, err := r.root.Lstat(name)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return nil //nolint:nilerr // it is gone
	case info.IsDir() && path.Base(name) != ".git":
		return r.directory(ctx, name)
	case info.Mode().IsRegular():
		r.visit(name, info)
	}
	return nil
}
