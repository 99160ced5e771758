package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// readFlags open anything without waiting: a pipe that nobody writes to would
// hold a plain open forever.
const readFlags = os.O_RDONLY | syscall.O_NONBLOCK

// open opens a regular file for reading.
func (d *Disk) open(name string) (*os.File, fs.FileInfo, error) {
	// To open a pipe or a device can have effects of its own, so those that are
	// there are refused unopened. What is swapped in after is found by the open
	// file.
	info, err := d.lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if err := regular(info); err != nil {
		return nil, nil, err
	}
	return d.openNow(name)
}

// openNow is open for a file that was just seen to be regular.
func (d *Disk) openNow(name string) (*os.File, fs.FileInfo, error) {
	f, err := d.tree.open(name, readFlags, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

func regular(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return backend.ErrIsDir
	case info.Mode()&fs.ModeSymlink != 0:
		return backend.ErrLink
	case !info.Mode().IsRegular():
		return backend.ErrNotFile
	}
	return nil
}

func directory(info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return backend.ErrLink
	case !info.IsDir():
		return backend.ErrNotDir
	}
	return nil
}

// within fails for a file over a limit.
func within(info fs.FileInfo, limit int64) error {
	if info.Size() > limit {
		return &backend.TooLargeError{Size: info.Size(), Limit: limit}
	}
	return nil
}

// readDir returns the entries of a directory, sorted by name.
func (d *Disk) readDir(dir string) ([]fs.DirEntry, error) {
	f, entries, err := d.openDir(dir)
	if err != nil {
		return nil, err
	}
	return entries, f.Close()
}

// openDir is readDir that leaves the directory open. Until it is closed, the
// entries describe what is in that directory, whatever has its path by then.
func (d *Disk) openDir(dir string) (*os.File, []fs.DirEntry, error) {
	info, err := d.lstat(dir)
	if err != nil {
		return nil, nil, err
	}
	if err := directory(info); err != nil {
		return nil, nil, err
	}
	f, err := d.tree.open(dir, readFlags|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, nil, err
	}
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return f, entries, nil
}

// bounded reads a file that grows no further than limit, and stops with ctx.
func bounded(ctx context.Context, f io.Reader, limit int64) io.Reader {
	return &reader{ctx: ctx, from: f, left: limit, limit: limit}
}

type reader struct {
	ctx         context.Context
	from        io.Reader
	left, limit int64
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.from.Read(p)
	if r.left -= int64(n); r.left < 0 {
		return 0, &backend.TooLargeError{Size: r.limit - r.left, Limit: r.limit}
	}
	return n, err
}

// failed makes the error of an operation, with its kind. The errors of a
// context stay as they are.
func (d *Disk) failed(op, name string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if _, already := errors.AsType[*backend.PathError](err); already {
		return err
	}
	if kind := d.kind(err); kind != nil {
		err = fmt.Errorf("%w: %w", kind, err)
	}
	return &backend.PathError{Op: op, Path: name, Err: err}
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
