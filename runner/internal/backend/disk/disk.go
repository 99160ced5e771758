package disk

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// TempDir is the directory, below the root, where files are written before they
// take their place. Git does not see it while it is empty.
const TempDir = ".deckhand-tmp"

// tempPrefix begins the name of a file that is written beside its place,
// because TempDir is unusable or on another filesystem.
const tempPrefix = ".deckhand-tmp-"

// A Disk is a backend over a directory.
type Disk struct {
	*tree
	now func() time.Time
	// escapes is the error by which os.Root says that a path leads outside; the
	// package does not export it.
	escapes error
	seed    maphash.Seed
	locks   [64]sync.Mutex
	quota   *quota // nil: as much as there is room for
}

var _ backend.Backend = (*Disk)(nil)

// Open makes a backend of a directory that exists. The clock measures how long
// searches take.
func Open(dir string, now func() time.Time) (*Disk, error) {
	t, err := openTree(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the root of a backend: %w", err)
	}
	_, err = t.root.Lstat("..")
	d := &Disk{tree: t, now: now, escapes: errors.Unwrap(err), seed: maphash.MakeSeed()}
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

// hidden reports whether a cleaned path names something temporary.
func hidden(name string) bool {
	return temporary(name) || strings.HasPrefix(name, TempDir+"/")
}

// clean returns the path as the root takes it.
func clean(name string) (string, error) {
	name, err := backend.Clean(name)
	if err != nil {
		return "", err
	}
	if hidden(name) {
		return "", backend.ErrBadName
	}
	return name, nil
}

// lock makes the changes of one file follow one another. The lock goes by the
// base name, case folded: two paths that lead to the same file, through linked
// directories or other case, share it. Strangers may too, which only costs a
// moment.
func (d *Disk) lock(name string) (unlock func()) {
	base := strings.ToLower(path.Base(name))
	mu := &d.locks[maphash.String(d.seed, base)%uint64(len(d.locks))]
	mu.Lock()
	return mu.Unlock
}

// Resolve implements [backend.Backend].
func (d *Disk) Resolve(ctx context.Context, name string) (string, error) {
	resolved, err := d.resolve(ctx, name)
	if err != nil {
		return "", d.failed("resolve", name, err)
	}
	return resolved, nil
}

func (d *Disk) resolve(ctx context.Context, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	name, err := clean(name)
	if err != nil {
		return "", err
	}
	resolved, err := d.tree.resolve(name)
	if err != nil {
		return "", err
	}
	return clean(resolved)
}

// List implements [backend.Backend].
func (d *Disk) List(ctx context.Context, dir string) ([]backend.Info, error) {
	infos, err := d.list(ctx, dir)
	if err != nil {
		return nil, d.failed("list", dir, err)
	}
	return infos, nil
}

func (d *Disk) list(ctx context.Context, dir string) ([]backend.Info, error) {
	dir, err := clean(dir)
	if err != nil {
		return nil, err
	}
	f, entries, err := d.openDir(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in, err := os.OpenRoot(f.Name()) // on Linux, the name of the open directory in /proc
	if err != nil {
		return nil, err
	}
	defer in.Close()
	infos := make([]backend.Info, 0, len(entries))
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		name := path.Join(dir, e.Name())
		if info, ok := d.describe(in, name, e); ok && !temporary(name) {
			infos = append(infos, info)
		}
	}
	return infos, nil
}

// describe returns what an entry of an open directory is: of a link, what it leads to, and where it
// leads nowhere that we go, the link itself.
func (d *Disk) describe(in *os.Root, name string, e fs.DirEntry) (backend.Info, bool) {
	info, err := in.Lstat(e.Name()) // to open each by its path takes twice as long
	if err != nil {                 // gone since the directory was read
		return backend.Info{}, false
	}
	link := e.Type()&fs.ModeSymlink != 0
	if link {
		if target, err := d.root.Stat(name); err == nil {
			info = target
		}
	}
	out := describe(name, info)
	out.Link = link
	return out, true
}

func describe(name string, info fs.FileInfo) backend.Info {
	out := backend.Info{Path: name, Dir: info.IsDir(), ModTime: info.ModTime()}
	if info.Mode().IsRegular() {
		out.Size = info.Size()
	}
	return out
}
