// Package disk is a backend over a directory.
//
// Everything goes through one os.Root, never through the path functions of package os, so that nothing outside the
// directory is opened, by any path, link or rename, even if a command changes links in the same directory while a call
// runs.
//
// What to know:
//   - A link is followed where it leads inside the root by relative steps. An
//     absolute link is ErrEscapes, even if it would lead back inside.
//   - Writing through a link writes the file that it names.
//   - Only regular files are read. A pipe, socket or device is ErrNotFile; it is
//     never waited for.
//   - A write replaces the file: other hard links to it keep the old content.
//     Reading through a hard link cannot be distinguished from reading the file. A process that can make a hard link to a
//     file outside has access to that file already.
//   - Files that were being written when the process died are under TempDir and
//     are removed by the next Open.
package disk

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// TempDir is the directory, below the root, where files are written before they
// take their place. Git does not see it while it is empty.
const TempDir = ".deckhand-tmp"

// tempPrefix is the prefix of a file that is written beside its target, because TempDir is unusable or on another
// filesystem.
const tempPrefix = ".deckhand-tmp-"

// A Disk is a [backend.Driver] over a directory.
type Disk struct {
	*tree
	// escapes is the error with which os.Root reports that a path leads outside; the package does not export it.
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
	// Removes the files that an ended process left. If that fails they stay invisible. It must not fail Open, because a
	// command may have changed their permissions.
	_ = t.root.RemoveAll(TempDir)
	return d, nil
}

// Close releases the directory. It does not wait for calls.
func (d *Disk) Close() error {
	_ = d.root.Remove(TempDir) // fails while a write goes on: the next Open removes it
	return d.tree.Close()
}

// temporary reports whether a path is one of our unfinished files, or the directory with them. Such files are hidden
// from callers.
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

// describe returns the description of an entry. A link is described by its target or, if it has none inside the root,
// as a link.
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
	// Opening a pipe or a device can have side effects, so existing ones are refused without opening them. If one is
	// put in place after this check, the open file shows it.
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

// revision identifies the content of a file as it was before other processes wrote it. It does not use the inode
// number, which some file systems change at each lookup.
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

// openDir opens a directory and returns the names in it, sorted. While it is open, names are resolved in that
// directory, even if its path changes.
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

// kinds maps errors of the system to errors of package backend.
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

// A Quota bounds the files of a backend.
type Quota struct {
	Bytes int64
	Files int
}

// OpenWithin is Open for a directory with a quota, because it shares its disk with other data. Existing files count.
// The quota counts only changes through the backend: no other process may write to the directory.
func OpenWithin(dir string, q Quota) (*Disk, error) {
	d, err := Open(dir)
	if err != nil {
		return nil, err
	}
	d.quota = &quota{most: q}
	if err := filepath.WalkDir(dir, d.quota.count); err != nil {
		_ = d.Close() // the first error is the one to tell
		return nil, fmt.Errorf("counting the files of a backend: %w", err)
	}
	return d, nil
}

// A quota counts the used space.
type quota struct {
	most Quota

	mu   sync.Mutex
	used Quota
}

// count adds a file that is there already.
func (q *quota) count(_ string, e fs.DirEntry, err error) error {
	if err != nil || !e.Type().IsRegular() {
		return err
	}
	info, err := e.Info()
	if err == nil {
		q.add(Quota{Bytes: info.Size(), Files: 1})
	}
	return err
}

// spend stores a content if there is space for it. It reserves the space first and releases it if storing fails, so
// that two concurrent calls cannot use the same space.
func (q *quota) spend(c content, place func() error) error {
	if q == nil {
		return place()
	}
	more := Quota{Bytes: int64(len(c.data)), Files: 1}
	if c.old != nil {
		more = Quota{Bytes: more.Bytes - c.old.size}
	}
	if !q.take(more) {
		return fmt.Errorf("%w: all files together may have %d bytes and be %d", backend.ErrNoSpace, q.most.Bytes, q.most.Files)
	}
	err := place()
	if err != nil {
		q.add(Quota{Bytes: -more.Bytes, Files: -more.Files})
	}
	return err
}

// take adds to the used space if that stays within the quota.
func (q *quota) take(more Quota) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if more.Bytes > 0 && q.used.Bytes+more.Bytes > q.most.Bytes || more.Files > 0 && q.used.Files+more.Files > q.most.Files {
		return false
	}
	q.used.Bytes += more.Bytes
	q.used.Files += more.Files
	return true
}

func (q *quota) add(more Quota) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used.Bytes += more.Bytes
	q.used.Files += more.Files
}

// Write implements [backend.Driver].
func (d *Disk) Write(_ context.Context, name string, data []byte, when backend.Revision) error {
	return d.failed(d.write(name, data, when))
}

func (d *Disk) write(name string, data []byte, when backend.Revision) error {
	if hidden(name) {
		return backend.ErrBadName
	}
	s, err := d.lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && when == backend.None:
		return d.replace(name, content{data: data})
	case errors.Is(err, fs.ErrNotExist):
		return backend.ErrChanged
	case err == nil:
		err = regular(s)
	}
	switch {
	case err != nil:
		return err
	case revision(s) != when:
		return backend.ErrChanged
	}
	return d.replace(name, content{data, &s})
}

// replace writes a content and replaces an existing file.
func (d *Disk) replace(target string, c content) error {
	// Rename ignores the permissions of the file that it replaces, so they are checked here: a user who made a file
	// read-only protects it from us, too.
	if c.old != nil && c.old.mode.Perm()&0o222 == 0 {
		return backend.ErrDenied
	}
	return d.quota.spend(c, func() error { return d.replaceUnchecked(target, c) })
}

// replaceUnchecked is replace without the checks.
func (d *Disk) replaceUnchecked(target string, c content) error {
	if dir := path.Dir(target); dir != "." && c.old == nil {
		if err := d.mkdirAll(dir); err != nil {
			return err
		}
	}
	err := d.mkdir(TempDir, 0o777)
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = d.put(path.Join(TempDir, rand.Text()), target, c)
	}
	if err != nil {
		// TempDir may be on another filesystem, or not a directory. An error that is about the file itself occurs
		// again.
		err = d.put(path.Join(path.Dir(target), tempPrefix+rand.Text()), target, c)
	}
	return err
}

// A content is the content of a new file: its bytes, and the mode of the old file if there was one.
type content struct {
	data []byte
	old  *status
}

// put writes a file under a temporary name and then renames it. Both the file and its name are on the disk when put
// returns, because the journal then records that the call is done.
func (d *Disk) put(temp, target string, c content) error {
	f, err := d.tree.open(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(c.data)
	if err == nil && c.old != nil {
		err = f.Chmod(c.old.mode.Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = d.rename(temp, target)
	}
	if err != nil {
		_ = d.remove(temp) // the first error is the one to tell
		return err
	}
	return d.syncDir(path.Dir(target))
}

func (d *Disk) syncDir(dir string) error {
	f, err := d.tree.open(dir, readFlags, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
