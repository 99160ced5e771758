package backend

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"path"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/backend/memlimit"
)

// tries is how often a change is made again because another writer was faster.
const tries = 8

// A conflictError is ErrChanged by the driver: the file changed after it was opened.
type conflictError struct{ error }

func (e conflictError) Unwrap() error { return e.error }

// change attempts to change a file, and again if another writer was faster. Changes
// of one file follow one another.
func (b *Backend) change(ctx context.Context, op, name string, attempt func(name string) error) error {
	at, err := clean(ctx, name)
	if err != nil {
		return failed(op, name, err)
	}
	defer b.lock(at)()
	for range tries {
		err = attempt(at)
		if _, conflict := errors.AsType[conflictError](err); !conflict {
			break
		}
	}
	return failed(op, name, err)
}

// lock serializes the changes of one file. It locks the base name with case folded, because two paths can lead to the
// same file, through two mounts or in another case. Other files may share the lock, which costs little.
func (b *Backend) lock(name string) (unlock func()) {
	base := strings.ToLower(path.Base(name))
	mu := &b.locks[maphash.String(b.seed, base)%uint64(len(b.locks))]
	mu.Lock()
	return mu.Unlock
}

// openToChange opens a file, unless it is known to be read-only.
func (b *Backend) openToChange(ctx context.Context, name string) (*File, error) {
	f, err := b.driver.Open(ctx, name)
	if err == nil && f.ReadOnly != nil {
		return nil, errors.Join(f.ReadOnly, f.Close())
	}
	return f, err
}

// put writes a file that was opened, or does not exist.
func (b *Backend) put(ctx context.Context, name string, data []byte, when Revision) error {
	err := b.driver.Write(ctx, name, data, when)
	if errors.Is(err, ErrChanged) {
		return conflictError{err}
	}
	return err
}

// Write replaces a file atomically. It creates the directories above it and keeps the mode of an existing file. It
// applies only to the given Version, except that writing the content that the file already has always succeeds: a
// repeated Write is harmless.
func (b *Backend) Write(ctx context.Context, name string, data []byte, when Version) (Written, error) {
	written := Written{Bytes: len(data), Version: versionOf(data)}
	err := b.change(ctx, "write", name, func(at string) error {
		f, err := b.openToChange(ctx, at)
		if written.Created = errors.Is(err, ErrNotFound); written.Created {
			if when != Any && when != Absent {
				return ErrChanged
			}
			return b.put(ctx, at, data, None)
		}
		if err != nil {
			return err
		}
		defer f.Close()
		same, err := checkVersion(ctx, f, written, when)
		if err != nil || same {
			return err
		}
		return b.put(ctx, at, data, f.Revision)
	})
	if err != nil {
		return Written{}, err
	}
	return written, nil
}

// checkVersion checks the version to which a write applies, and reports whether the file already has the content.
func checkVersion(ctx context.Context, f *File, w Written, when Version) (same bool, err error) {
	if when == Any && f.Size != int64(w.Bytes) {
		return false, nil
	}
	version, err := versionOfReader(bounded(ctx, f, MaxRead))
	switch {
	case err != nil:
		return false, err
	case version == w.Version:
		return true, nil
	case when == Absent:
		return false, ErrExists
	case when != Any && when != version:
		return false, ErrChanged
	}
	return false, nil
}

// Edit replaces text in a file atomically, keeping its mode, byte order mark, line ends
// and bytes that are not UTF-8. Edits of one file run one after the other.
func (b *Backend) Edit(ctx context.Context, name string, e Edit) (Edited, error) {
	var edited Edited
	err := b.change(ctx, "edit", name, func(at string) (err error) {
		edited, err = b.edit(ctx, at, e)
		return err
	})
	if err != nil {
		return Edited{}, err
	}
	return edited, nil
}

func (b *Backend) edit(ctx context.Context, name string, e Edit) (Edited, error) {
	f, err := b.openToChange(ctx, name)
	if err != nil {
		return Edited{}, err
	}
	defer f.Close()
	if err := within(f.Size, MaxEdit); err != nil {
		return Edited{}, err
	}
	release, err := memlimit.Contents.Acquire(ctx, editMemory(f.Size, e))
	if err != nil {
		return Edited{}, err
	}
	defer release()
	var data bytes.Buffer
	data.Grow(int(f.Size) + bytes.MinRead)
	if _, err := data.ReadFrom(bounded(ctx, f, MaxEdit)); err != nil {
		return Edited{}, err
	}
	if e.When != Any && e.When != versionOf(data.Bytes()) {
		return Edited{}, ErrChanged
	}
	out, edited, err := replaceText(data.Bytes(), e)
	if err != nil {
		return Edited{}, err
	}
	return edited, b.put(ctx, name, out, f.Revision)
}
