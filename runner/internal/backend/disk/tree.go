package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// A tree has the files below a directory. None of its methods follows a symbolic link, at the end of a path or before:
// a path that a policy allowed either leads to the same file as then, or to [backend.ErrLink]. Paths are clean and
// relative.
type tree struct {
	root *os.Root
	dir  *os.File
	beneath
}

// A status describes a file: the permissions and the type. All types other than file, directory and link are irregular.
type status struct {
	mode    fs.FileMode
	size    int64
	modTime time.Time
}

func openTree(dir string) (*tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &tree{root: root, dir: f}, nil
}

func (t *tree) Close() error { return errors.Join(t.dir.Close(), t.root.Close()) }

// mkdirAll makes a directory and those above it that are missing.
func (t *tree) mkdirAll(dir string) error {
	if s, err := t.lstat(dir); err == nil && s.mode.IsDir() {
		return nil
	}
	for i := range len(dir) + 1 {
		if i < len(dir) && dir[i] != '/' {
			continue
		}
		if err := t.mkdir(dir[:i], 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// resolve returns a path with its links followed. If the path does not exist, the missing part is kept unchanged below
// the deepest existing directory.
func (t *tree) resolve(name string) (string, error) {
	if s, err := t.lstat(name); err == nil && s.mode&fs.ModeSymlink == 0 {
		return name, nil
	}
	r := resolver{tree: t, rest: strings.Split(name, "/")}
	for len(r.rest) > 0 {
		if err := r.step(); err != nil {
			return "", err
		}
	}
	return path.Clean(r.at), nil
}

// maxLinks is how many links may lead to one file; the kernel allows as many.
const maxLinks = 40

// A resolver follows the links of a path, one part after the other.
type resolver struct {
	tree  *tree
	at    string   // what is resolved so far: it has no links
	rest  []string // the parts that are left
	links int
}

func (r *resolver) step() error {
	part := r.rest[0]
	r.rest = r.rest[1:]
	switch part {
	case "", ".":
		return nil
	case "..": // of a link; what it goes up from has no links
		if r.at == "" {
			return backend.ErrEscapes
		}
		r.at = strings.TrimPrefix(path.Dir("/"+r.at), "/")
		return nil
	}
	next := path.Join(r.at, part)
	info, err := r.tree.root.Lstat(next)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return r.missing(next)
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return r.follow(next)
	}
	r.at = next
	return nil
}

// missing ends the resolution at a name that does not exist. A later ".." is refused, because its meaning is not known.
func (r *resolver) missing(next string) error {
	for _, part := range r.rest {
		if part == ".." {
			return fs.ErrNotExist
		}
		next = path.Join(next, part)
	}
	r.at, r.rest = next, nil
	return nil
}

func (r *resolver) follow(link string) error {
	if r.links++; r.links > maxLinks {
		return fmt.Errorf("%w: more than %d links lead to it", backend.ErrBadName, maxLinks)
	}
	target, err := r.tree.root.Readlink(link)
	switch {
	case errors.Is(err, fs.ErrInvalid): // it has become something else
		r.at = link
		return nil
	case err != nil:
		return err
	case path.IsAbs(target):
		return &backend.AbsoluteLinkError{}
	}
	r.rest = append(strings.Split(target, "/"), r.rest...)
	return nil
}
