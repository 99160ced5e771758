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
	// maxNames bounds the directory entries that are visited.
	maxNames = 1_000_000
	// maxDepth bounds the depth of directories.
	maxDepth = 200
	// dirFlags open a directory, without blocking if a named pipe has replaced it.
	dirFlags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_DIRECTORY
)

// A found is a file that is new or changed.
type found struct {
	name string
	info fs.FileInfo
}

// newestFirst orders by modification time, then by size, both descending.
func newestFirst(a, b found) int {
	return cmp.Or(b.info.ModTime().Compare(a.info.ModTime()), cmp.Compare(b.info.Size(), a.info.Size()), strings.Compare(a.name, b.name))
}

// Artifacts returns the files of the workspace that are new or changed since the
// manifest: at most task.MaxFiles, the newest first, with the paths that the model
// knows. more counts the others, including those whose names cannot be shown.
// Links are not followed, and .git directories are skipped.
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

// shown reports whether a name can be in the status: not too long, and printable text
// in one line.
func shown(name string) bool {
	return len(task.Workspace)+1+len(name) <= task.MaxPath && utf8.ValidString(name) &&
		!strings.ContainsAny(name, "\n\t") && redact.Printable(name) == name
}

// A fileWalk visits the files of a workspace once.
type fileWalk struct {
	root  *os.Root
	visit func(string, fs.FileInfo)
	names int
}

// eachFile visits regular files, in no order. It skips files that cannot be read. It
// returns false if there are more than maxNames.
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
			break // skip what cannot be read
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
		return nil //nolint:nilerr // it was removed
	case info.IsDir() && path.Base(name) != ".git":
		return r.directory(ctx, name)
	case info.Mode().IsRegular():
		r.visit(name, info)
	}
	return nil
}
