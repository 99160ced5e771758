package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// TempDir is the directory, below the root, where files are written before they
// take their place. Git does not see it while it is empty.
const TempDir = ".deckhand-tmp"

// tempPrefix begins the name of a file that is written beside its place,
// because TempDir is unusable or on another filesystem.
const tempPrefix = ".deckhand-tmp-"

// A Disk is a [backend.Driver] over a directory.
type Disk struct {
	*tree
	// escapes is the error by which os.Root says that a path leads outside; the
	// package does not export it.
	escapes error
	quota   *quota // nil: as much as there is room for
}

var _ backend.Driver = (*Disk)(nil)

// Open makes a driver of a directory that exists.
func Open(dir string) (*Disk, error) {
	t, err := openTree(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the root of a backend: %w", err)
	}
	_, err = t.root.Lstat("..")
	d := &Disk{tree: t, escapes: errors.Unwrap(err)}
	// What a dead process left. Where it cannot be removed it stays invisible; no
	// shell that spoils it shall keep us from opening.
	_ = t.root.RemoveAll(TempDir)
	return d, nil
}

// Close releases the directory. It does not wait for calls.
func (d *Disk) Close() error {
	_ = d.root.Remove(TempDir) // fails while a write goes on: the next Open removes it
	return d.tree.Close()
}

// temporary reports whether a path is one of our unfinished files, or holds
// them. They do not exist for anybody else.
func temporary(name string) bool {
	return name == TempDir || strings.HasPrefix(path.Base(name), tempPrefix)
}

// hidden reports whether a path names something temporary.
func hidden(name string) bool {
	return temporary(name) || strings.HasPrefix(name, TempDir+"/")
}

// Resolve implements [backend.Driver].
func (d *Disk) Resolve(_ context.Context, name string) (string, error) {
	resolved, err := d.resolve(name)
	switch {
	case err != nil:
		return "", d.failed(err)
	case hidden(name), hidden(resolved):
		return "", backend.ErrBadName
	}
	return resolved, nil
}

// List implements [backend.Driver].
func (d *Disk) List(ctx context.Context, dir string) ([]backend.Info, error) {
	infos, err := d.list(ctx, dir)
	return infos, d.failed(err)
}

func (d *Disk) list(ctx context.Context, dir string) ([]backend.Info, error) {
	f, names, err := d.openDir(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	infos := make([]backend.Info, 0, len(names))
	for _, base := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		name := path.Join(dir, base)
		s, err := statAt(f, base)          // to open each by its path takes twice as long
		if err != nil || temporary(name) { // gone since the directory was read, or ours
			continue
		}
		infos = append(infos, d.describe(name, s))
	}
	return infos, nil
}

// describe returns what is at a path: of a link, what it leads to, and where it leads
// nowhere that we go, the link itself.
func (d *Disk) describe(name string, s status) backend.Info {
	out := backend.Info{Path: name, Link: s.mode&fs.ModeSymlink != 0}
	if out.Link {
		if target, err := d.root.Stat(name); err == nil {
			s = status{mode: target.Mode(), size: target.Size(), modTime: target.ModTime()}
		}
	}
	out.Dir, out.Irregular, out.ModTime = s.mode.IsDir(), !s.mode.IsDir() && !s.mode.IsRegular(), s.modTime
	if s.mode.IsRegular() {
		out.Size = s.size
	}
	return out
}
