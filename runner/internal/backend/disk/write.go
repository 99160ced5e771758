package disk

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/memlimit"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/text"
)

// Write implements [backend.Backend].
func (d *Disk) Write(ctx context.Context, name string, data []byte, when backend.Version) (backend.Written, error) {
	written, err := d.write(ctx, name, data, when)
	if err != nil {
		return backend.Written{}, d.failed("write", name, err)
	}
	return written, nil
}

func (d *Disk) write(ctx context.Context, name string, data []byte, when backend.Version) (backend.Written, error) {
	at, err := target(ctx, name)
	if err != nil {
		return backend.Written{}, err
	}
	defer d.lock(at)()

	written := backend.Written{Bytes: len(data), Version: text.Version(data)}
	old, err := d.existing(at)
	switch {
	case err != nil:
		return backend.Written{}, err
	case old == nil && when != backend.Any && when != backend.Absent:
		return backend.Written{}, backend.ErrChanged
	case old == nil:
		written.Created = true
		return written, d.replace(at, data, nil)
	}
	return written, d.overwrite(ctx, at, data, when)
}

// overwrite replaces a file that is there, if it has the version wanted.
func (d *Disk) overwrite(ctx context.Context, target string, data []byte, when backend.Version) error {
	f, info, err := d.open(target)
	if err != nil {
		return err
	}
	defer f.Close()
	if when != backend.Any || info.Size() == int64(len(data)) {
		version, err := text.VersionOf(bounded(ctx, f, backend.MaxRead))
		switch {
		case err != nil:
			return err
		case version == text.Version(data):
			return nil
		case when == backend.Absent:
			return backend.ErrExists
		case when != backend.Any && when != version:
			return backend.ErrChanged
		}
	}
	return d.replace(target, data, info)
}

// Edit implements [backend.Backend].
func (d *Disk) Edit(ctx context.Context, name string, e backend.Edit) (backend.Edited, error) {
	edited, err := d.edit(ctx, name, e)
	if err != nil {
		return backend.Edited{}, d.failed("edit", name, err)
	}
	return edited, nil
}

func (d *Disk) edit(ctx context.Context, name string, e backend.Edit) (backend.Edited, error) {
	at, err := target(ctx, name)
	if err != nil {
		return backend.Edited{}, err
	}
	defer d.lock(at)()

	f, info, err := d.open(at)
	if err != nil {
		return backend.Edited{}, err
	}
	defer f.Close()
	if err := within(info, backend.MaxEdit); err != nil {
		return backend.Edited{}, err
	}
	release, err := memlimit.Contents.Acquire(ctx, text.ReplaceMemory(info.Size(), e))
	if err != nil {
		return backend.Edited{}, err
	}
	defer release()
	data, err := whole(ctx, f, info)
	switch {
	case err != nil:
		return backend.Edited{}, err
	case e.When != backend.Any && e.When != text.Version(data):
		return backend.Edited{}, backend.ErrChanged
	}
	out, edited, err := text.Replace(data, e)
	if err != nil {
		return backend.Edited{}, err
	}
	return edited, d.replace(at, out, info)
}

// whole reads a file to be edited into a buffer of its size.
func whole(ctx context.Context, f *os.File, info fs.FileInfo) ([]byte, error) {
	var data bytes.Buffer
	data.Grow(int(info.Size()) + bytes.MinRead)
	_, err := data.ReadFrom(bounded(ctx, f, backend.MaxEdit))
	return data.Bytes(), err
}

// target returns the path of the file that is to be written.
func target(ctx context.Context, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return clean(name)
}

// existing returns the file that a write replaces, or nil.
func (d *Disk) existing(target string) (fs.FileInfo, error) {
	info, err := d.lstat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return info, regular(info)
}

// replace puts data in the place of a file, which has the mode of the old one.
func (d *Disk) replace(target string, data []byte, old fs.FileInfo) error {
	// A rename does not ask the file that it replaces. We do: who took the right
	// to write from a file meant us too.
	if old != nil && old.Mode().Perm()&0o222 == 0 {
		return backend.ErrDenied
	}
	c := content{data, old}
	return d.quota.spend(c, func() error { return d.place(target, c) })
}

// place is replace without its checks.
func (d *Disk) place(target string, c content) error {
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
	old  fs.FileInfo
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
		err = f.Chmod(c.old.Mode().Perm())
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
