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
	// fileFlags open a file without blocking: opening a pipe without a writer would block
	// forever.
	fileFlags = os.O_RDONLY | syscall.O_NONBLOCK
	// dirFlags open a directory and nothing else.
	dirFlags = fileFlags | syscall.O_DIRECTORY
	// maxReads is how often a file is read if it changes meanwhile.
	maxReads = 3
)

// errChanging means that a file changed while it was read.
var errChanging = errors.New("it changes while it is read")

// openSame opens the file that seen describes, and no other file of that name.
func openSame(root *os.Root, name string, seen fs.FileInfo, flags int) (*os.File, error) {
	f, err := root.OpenFile(name, flags, 0)
	if isReplaced(err) {
		return nil, errChanging
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(seen, info) {
		err = errChanging
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// A version is known content of a file.
type version struct {
	size int64
	hash plumbing.Hash
}

// blob returns the object of a regular file's content, and writes it unless it is a known
// version.
func (w *walk) blob(ctx context.Context, name string, known []version) (plumbing.Hash, error) {
	var err error
	for range maxReads {
		var h plumbing.Hash
		h, err = w.read(ctx, name, known)
		if err == nil || !errors.Is(err, errChanging) {
			return h, err
		}
	}
	return plumbing.ZeroHash, changingError(name)
}

func changingError(name string) error {
	return Refused("%q cannot be published: %v. Stop what writes to it.", printable("/"+name), errChanging)
}

// read reads the file once.
func (w *walk) read(ctx context.Context, name string, known []version) (plumbing.Hash, error) {
	seen, err := w.root.Lstat(name)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if !seen.Mode().IsRegular() { // it was, a moment ago
		return plumbing.ZeroHash, errChanging
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
	if h, ok, err := matchKnown(ctx, f, info.Size(), known); ok || err != nil {
		return h, err
	}
	if w.bytes += info.Size(); w.bytes > w.limits.Bytes {
		return plumbing.ZeroHash, Refused("The files that are new or changed have more than %d bytes together, %q among them: remove what is not to be published, or add it to .gitignore in the repository.", w.limits.Bytes, printable(name))
	}
	h, err := w.store.put(plumbing.BlobObject, info.Size(), withContext(ctx, f))
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // it became shorter
		w.bytes -= info.Size()
		return plumbing.ZeroHash, errChanging
	}
	return h, volumeFull(err)
}

// matchKnown reports whether an open file has known content. It reads the file only if the
// size matches, and leaves it at its beginning.
func matchKnown(ctx context.Context, f *os.File, size int64, known []version) (plumbing.Hash, bool, error) {
	ofSize := false
	for _, v := range known {
		ofSize = ofSize || v.size == size
	}
	if !ofSize {
		return plumbing.ZeroHash, false, nil
	}
	hasher := plumbing.NewHasher(plumbing.BlobObject, size)
	if _, err := io.CopyN(hasher, withContext(ctx, f), size); err != nil {
		if errors.Is(err, io.EOF) {
			err = errChanging
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

// link returns the object of a symbolic link, which is its text.
func (w *walk) link(name string, had entry) (plumbing.Hash, error) {
	target, err := w.root.Readlink(name)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if len(target) > maxLink {
		return plumbing.ZeroHash, Refused("The symbolic link %q is longer than %d bytes: remove it.", printable(name), maxLink)
	}
	return w.putUnlessKnown(had.hash, plumbing.BlobObject, []byte(target))
}

// withContext returns a reader that fails when a context ends.
func withContext(ctx context.Context, from io.Reader) io.Reader { return &reader{ctx: ctx, from: from} }

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

// isReplaced reports whether an error means that a file of another type replaced the one
// that was just seen. Package os itself reports a link that leaves the root; the system
// reports the others.
func isReplaced(err error) bool {
	if code, ok := errors.AsType[syscall.Errno](err); ok {
		return code == syscall.ELOOP || code == syscall.ENOTDIR || code == syscall.EISDIR || code == syscall.ENXIO || code == syscall.EINVAL
	}
	_, ofPath := errors.AsType[*fs.PathError](err)
	return ofPath
}

// unreadable returns the error for a file that cannot be read.
func unreadable(name string, err error) error {
	switch {
	case errors.Is(err, errChanging), isReplaced(err):
		return changingError(name)
	case errors.Is(err, fs.ErrPermission):
		return Refused("%q cannot be read, so it cannot be published: make it readable, or remove it.", printable("/"+name))
	default:
		return fmt.Errorf("reading %q: %w", printable(name), err)
	}
}
