package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"syscall"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// readFlags open anything without waiting: a pipe without a writer would
// block a plain open forever.
const readFlags = os.O_RDONLY | syscall.O_NONBLOCK

// Open implements [backend.Driver].
func (d *Disk) Open(_ context.Context, name string) (*backend.File, error) {
	f, err := d.open(name)
	return f, d.failed(err)
}

func (d *Disk) open(name string) (*backend.File, error) {
	if hidden(name) {
		return nil, backend.ErrBadName
	}
	// To open a pipe or a device can have effects of its own, so those that are
	// there are refused unopened. What is swapped in after is found by the open
	// file.
	if s, err := statAt(d.dir, name); err == nil && s.mode.IsRegular() {
		return d.openNow(name)
	}
	s, err := d.lstat(name) // what the path says without its links
	if err == nil {
		err = regular(s)
	}
	if err != nil {
		return nil, err
	}
	return d.openNow(name)
}

// openNow is open for a file that was just seen to be regular.
func (d *Disk) openNow(name string) (*backend.File, error) {
	f, err := d.openRaw(name, readFlags)
	if err != nil {
		return nil, err
	}
	s, err := f.stat()
	if err == nil {
		err = regular(s)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &backend.File{ReadCloser: f, Size: s.size, Revision: revision(s)}, nil
}

// revision tells a file from what it was before another process wrote it. It has no
// inode number: there are file systems that give a file another one each time it is
// looked up.
func revision(s status) backend.Revision {
	return backend.Revision(strconv.FormatInt(s.size, 36) + "-" + strconv.FormatInt(s.modTime.UnixNano(), 36))
}

func regular(s status) error {
	switch {
	case s.mode.IsDir():
		return backend.ErrIsDir
	case s.mode&fs.ModeSymlink != 0:
		return backend.ErrLink
	case !s.mode.IsRegular():
		return backend.ErrNotFile
	}
	return nil
}

func directory(s status) error {
	switch {
	case s.mode&fs.ModeSymlink != 0:
		return backend.ErrLink
	case !s.mode.IsDir():
		return backend.ErrNotDir
	}
	return nil
}

// openDir opens a directory and returns the names in it, sorted. Until it is closed,
// the names are of what is in that directory, whatever has its path by then.
func (d *Disk) openDir(dir string) (*os.File, []string, error) {
	if hidden(dir) {
		return nil, nil, backend.ErrBadName
	}
	s, err := d.lstat(dir)
	if err == nil {
		err = directory(s)
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := d.tree.open(dir, readFlags|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, nil, err
	}
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	slices.Sort(names)
	return f, names, nil
}

// failed adds the kind of an error.
func (d *Disk) failed(err error) error {
	if err == nil {
		return nil
	}
	if kind := d.kind(err); kind != nil {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}

// kinds are the system's errors that have a name of ours.
var kinds = []struct {
	err  error
	kind error
}{
	{fs.ErrNotExist, backend.ErrNotFound},
	{syscall.ENOTDIR, backend.ErrNotDir},
	{syscall.EISDIR, backend.ErrIsDir},
	{fs.ErrPermission, backend.ErrDenied},
	{syscall.EROFS, backend.ErrDenied},
	{syscall.ENAMETOOLONG, backend.ErrBadName},
	{syscall.EINVAL, backend.ErrBadName},
	{syscall.ELOOP, backend.ErrLink},
	{syscall.ENXIO, backend.ErrNotFile},
	{syscall.ENOSPC, backend.ErrNoSpace},
	{syscall.EDQUOT, backend.ErrNoSpace},
}

func (d *Disk) kind(err error) error {
	if errors.Is(err, d.escapes) {
		return backend.ErrEscapes
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.kind
		}
	}
	return nil // one of ours already, or none that has a name of ours
}
