package disk

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/text"
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
	target, err := d.target(ctx, name)
	if err != nil {
		return backend.Written{}, err
	}
	defer d.lock(target)()

	written := backend.Written{Bytes: len(data), Version: text.Version(data)}
	old, err := d.existing(target)
	switch {
	case err != nil:
		return backend.Written{}, err
	case old == nil && when != backend.Any && when != backend.Absent:
		return backend.Written{}, backend.ErrChanged
	case old == nil:
		written.Created = true
		return written, d.replace(target, data, nil)
	}
	return written, d.overwrite(ctx, target, data, when)
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
	target, err := d.target(ctx, name)
	if err != nil {
		return backend.Edited{}, err
	}
	defer d.lock(target)()

	data, info, err := d.whole(ctx, target)
	switch {
	case err != nil:
		return backend.Edited{}, err
	case e.When != backend.Any && e.When != text.Version(data):
		return backend.Edited{}, backend.ErrChanged
	case text.Binary(data):
		return backend.Edited{}, backend.ErrBinary
	}
	out, edited, err := text.Replace(data, e)
	if err != nil {
		return backend.Edited{}, err
	}
	return edited, d.replace(target, out, info)
}

// whole reads a file to be edited.
func (d *Disk) whole(ctx context.Context, target string) ([]byte, fs.FileInfo, error) {
	f, info, err := d.open(target)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if err := within(info, backend.MaxEdit); err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(bounded(ctx, f, backend.MaxEdit))
	return data, info, err
}

// maxLinks is how many links may lead to one file; the kernel allows as many.
const maxLinks = 40

// target returns the path of the file that is to be written: of a link, what
// the link names. To rename over the link itself would cut it.
func (d *Disk) target(ctx context.Context, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	name, err := clean(name)
	for range maxLinks {
		if err != nil {
			return "", err
		}
		info, statErr := d.root.Lstat(name)
		if errors.Is(statErr, fs.ErrNotExist) {
			return name, nil
		}
		if statErr != nil {
			return "", statErr
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return name, nil
		}
		name, err = d.readLink(name)
	}
	return "", syscall.ELOOP
}

func (d *Disk) readLink(name string) (string, error) {
	link, err := d.root.Readlink(name)
	if err != nil {
		return "", err
	}
	if path.IsAbs(link) {
		return "", backend.ErrEscapes
	}
	// Not cleaned: what ".." means after a linked directory is for the root to
	// find out.
	return name[:strings.LastIndex(name, "/")+1] + link, nil
}

// existing returns the file that a write replaces, or nil.
func (d *Disk) existing(target string) (fs.FileInfo, error) {
	info, err := d.root.Lstat(target)
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
		if err := d.root.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	err := d.root.Mkdir(TempDir, 0o777)
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
	f, err := d.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
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
		err = d.root.Rename(temp, target)
	}
	if err != nil {
		_ = d.root.Remove(temp) // the first error is the one to tell
		return err
	}
	return d.syncDir(path.Dir(target))
}

func (d *Disk) syncDir(dir string) error {
	f, err := d.root.OpenFile(dir, readFlags, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
