package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"
)

const (
	// fileFlags open anything without waiting: a pipe that nobody writes to would
	// hold a plain open forever.
	fileFlags = os.O_RDONLY | syscall.O_NONBLOCK
	// dirFlags open a directory and nothing else.
	dirFlags = fileFlags | syscall.O_DIRECTORY
	// tries is how often a file is read that changes meanwhile.
	tries = 3
)

// errMoving is what a file amounts to that changes while it is read.
var errMoving = errors.New("it changes while it is read")

// openSame opens what was just looked at, and nothing that was put in its place.
func openSame(root *os.Root, name string, seen fs.FileInfo, flags int) (*os.File, error) {
	f, err := root.OpenFile(name, flags, 0)
	if swapped(err) {
		return nil, errMoving
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(seen, info) {
		err = errMoving
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// A version is content that a file may have without being new.
type version struct {
	size int64
	hash plumbing.Hash
}

// blob is the object of a regular file's content: written, unless it is one of
// the known versions.
func (w *walk) blob(ctx context.Context, name string, known []version) (plumbing.Hash, error) {
	var err error
	for range tries {
		var h plumbing.Hash
		h, err = w.read(ctx, name, known)
		if err == nil || !errors.Is(err, errMoving) {
			return h, err
		}
	}
	return plumbing.ZeroHash, moving(name)
}

func moving(name string) error {
	return Refused("%q cannot be published: %v. Stop what writes to it.", words("/"+name), errMoving)
}

// read is one try.
func (w *walk) read(ctx context.Context, name string, known []version) (plumbing.Hash, error) {
	seen, err := w.root.Lstat(name)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if !seen.Mode().IsRegular() { // it was, a moment ago
		return plumbing.ZeroHash, errMoving
	}
	f, err := openSame(w.root, name, seen, fileFlags)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if h, ok, err := recognize(ctx, f, info.Size(), known); ok || err != nil {
		return h, err
	}
	if w.bytes += info.Size(); w.bytes > w.limits.Bytes {
		return plumbing.ZeroHash, Refused("The files that are new or changed have more than %d bytes together, %q among them: remove what is not to be published, or add it to .gitignore in the repository.", w.limits.Bytes, words(name))
	}
	h, err := w.store.put(plumbing.BlobObject, info.Size(), until(ctx, f))
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // it became shorter
		w.bytes -= info.Size()
		return plumbing.ZeroHash, errMoving
	}
	return h, volumeFull(err)
}

// recognize says whether an open file has content that is known. It reads no
// more than that would have, and leaves the file at its beginning.
func recognize(ctx context.Context, f *os.File, size int64, known []version) (plumbing.Hash, bool, error) {
	ofSize := false
	for _, v := range known {
		ofSize = ofSize || v.size == size
	}
	if !ofSize {
		return plumbing.ZeroHash, false, nil
	}
	hasher := plumbing.NewHasher(plumbing.BlobObject, size)
	if _, err := io.CopyN(hasher, until(ctx, f), size); err != nil {
		if errors.Is(err, io.EOF) {
			err = errMoving
		}
		return plumbing.ZeroHash, false, err
	}
	h := hasher.Sum()
	for _, v := range known {
		if v.hash == h {
			return h, true, nil
		}
	}
	_, err := f.Seek(0, io.SeekStart)
	return h, false, err
}

// link is the object of a symbolic link: its text, wherever it leads.
func (w *walk) link(name string, had entry) (plumbing.Hash, error) {
	target, err := w.root.Readlink(name)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if len(target) > maxLink {
		return plumbing.ZeroHash, Refused("The symbolic link %q is longer than %d bytes: remove it.", words(name), maxLink)
	}
	return w.unless(had.hash, plumbing.BlobObject, []byte(target))
}

// until reads until a context ends.
func until(ctx context.Context, from io.Reader) io.Reader { return &reader{ctx: ctx, from: from} }

type reader struct {
	ctx  context.Context
	from io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}

// swapped says whether an error is of a kind that what was just seen cannot
// give: something else is there now. That a link leads out is an error of package
// os alone, the others are of the system.
func swapped(err error) bool {
	if code, ok := errors.AsType[syscall.Errno](err); ok {
		return code == syscall.ELOOP || code == syscall.ENOTDIR || code == syscall.EISDIR || code == syscall.ENXIO || code == syscall.EINVAL
	}
	_, ofPath := errors.AsType[*fs.PathError](err)
	return ofPath
}

// unreadable makes a file that cannot be read something to be told to people.
func unreadable(name string, err error) error {
	switch {
	case errors.Is(err, errMoving), swapped(err):
		return moving(name)
	case errors.Is(err, fs.ErrPermission):
		return Refused("%q cannot be read, so it cannot be published: make it readable, or remove it.", words("/"+name))
	default:
		return fmt.Errorf("reading %q: %w", words(name), err)
	}
}
