package disk

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

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

// replace puts a content in the place of a file.
func (d *Disk) replace(target string, c content) error {
	// A rename does not ask the file that it replaces. We do: who took the right
	// to write from a file meant us too.
	if c.old != nil && c.old.mode.Perm()&0o222 == 0 {
		return backend.ErrDenied
	}
	return d.quota.spend(c, func() error { return d.replaceUnchecked(target, c) })
}

// replaceUnchecked is replace without its checks.
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
		// TempDir may be on another filesystem, or no directory of ours. What is
		// wrong with the file itself is wrong again.
		err = d.put(path.Join(path.Dir(target), tempPrefix+rand.Text()), target, c)
	}
	return err
}

// A content is what a new file has: bytes, and the mode of the old one if there
// was one.
type content struct {
	data []byte
	old  *status
}

// put writes a file under a temporary name and then gives it its own. Both the
// file and its name are on the disk when put returns, because the record that
// the call is done will be.
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
