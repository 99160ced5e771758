package git

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/hash"
)

// writePack writes objects as a pack without deltas. It holds no object in memory as a whole.
func (s *Store) writePack(ctx context.Context, to io.Writer, objects []plumbing.Hash) error {
	sum := hash.New(crypto.SHA1)
	w := io.MultiWriter(to, sum)
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(objects))) //nolint:gosec // bounded by the limits of a snapshot
	if _, err := w.Write(head); err != nil {
		return err
	}
	z := zlib.NewWriter(w)
	for _, h := range objects {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.packOne(w, z, h); err != nil {
			return fmt.Errorf("packing %s: %w", h, err)
		}
	}
	_, err := to.Write(sum.Sum(nil))
	return err
}

func (s *Store) packOne(w io.Writer, z *zlib.Writer, h plumbing.Hash) error {
	o, err := s.storage.EncodedObject(plumbing.AnyObject, h)
	if err != nil {
		return err
	}
	r, err := o.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := w.Write(packHeader(o.Type(), o.Size())); err != nil {
		return err
	}
	z.Reset(w)
	_, err = io.Copy(z, r)
	return errors.Join(err, z.Close())
}

// packHeader returns the type and the size: four bits of it in the first byte, then seven in each.
func packHeader(kind plumbing.ObjectType, size int64) []byte {
	rest := uint64(size) >> 4                    //nolint:gosec // sizes are not negative
	out := []byte{byte(kind)<<4 | byte(size&15)} //nolint:gosec // four bits
	for ; rest > 0; rest >>= 7 {
		out[len(out)-1] |= 0x80
		out = append(out, byte(rest&0x7f))
	}
	return out
}

// maxObject bounds an object of a pack, which go-git has whole in memory while it makes the index of the
// pack, in bytes. The large servers of repositories take no larger file.
const maxObject = 100 << 20

// A packReader passes on a pack. It fails with a [RefusedError] if an object is too large, which the size before its
// content shows. It scans the pack while a caller reads it.
type packReader struct {
	from    io.Reader
	to      *io.PipeWriter
	scanned chan error
	// failed is the error of reading from; nil: there was none.
	failed error
}

// newPackReader returns a packReader, which the caller must close.
func newPackReader(from io.Reader) *packReader {
	r, w := io.Pipe()
	p := &packReader{from: from, to: w, scanned: make(chan error, 1)}
	go func() {
		err := scanPack(r)
		_ = r.CloseWithError(err) // of a pipe: cannot fail
		p.scanned <- err
	}()
	return p
}

// Read implements io.Reader. It returns io.EOF only after the whole pack was scanned without an error.
func (p *packReader) Read(b []byte) (int, error) {
	n, err := p.from.Read(b)
	if _, refused := p.to.Write(b[:n]); refused != nil {
		return 0, refused
	}
	switch {
	case errors.Is(err, io.EOF):
		_ = p.to.Close() // of a pipe: cannot fail
		if err := <-p.scanned; err != nil {
			p.scanned <- err
			return 0, err
		}
		p.scanned <- nil
	case err != nil:
		p.failed = err
	}
	return n, err
}

// close ends the scan, and returns why the pack cannot be used. err is the error of the caller that read it.
func (p *packReader) close(err error) error {
	_ = p.to.CloseWithError(io.ErrUnexpectedEOF) // of a pipe: cannot fail
	scanned := <-p.scanned
	refused, is := errors.AsType[*RefusedError](scanned)
	switch {
	case is:
		return refused
	case err == nil, p.failed != nil:
		return err
	case errors.Is(err, packfile.ErrEmptyPackfile), scanned != nil && !errors.Is(scanned, io.ErrUnexpectedEOF):
		return Refused("The git server sent a pack that cannot be read (%v): see what \"git fsck\" says of the repository there.", err)
	}
	return err
}

// scanPack reads a pack to its end, and looks at the size of each object.
func scanPack(r io.Reader) error {
	scanner := packfile.NewScanner(r)
	_, many, err := scanner.Header()
	for range many {
		if err != nil {
			break
		}
		err = scanObject(scanner)
	}
	if err != nil {
		return fmt.Errorf("reading the pack: %w", err)
	}
	_, err = io.Copy(io.Discard, r) // its checksum, and what the scanner has not read
	return err
}

func scanObject(scanner *packfile.Scanner) error {
	header, err := scanner.NextObjectHeader()
	if err != nil {
		return err
	}
	if header.Length > maxObject {
		return tooLargeObject(header.Length)
	}
	isDelta := header.Type == plumbing.OFSDeltaObject || header.Type == plumbing.REFDeltaObject
	begin := &beginning{}
	if _, _, err := scanner.NextObject(begin); err != nil || !isDelta {
		return err
	}
	if size := begin.targetSize(); size > maxObject {
		return tooLargeObject(int64(min(size, 1<<62)))
	}
	return nil
}

func tooLargeObject(size int64) error {
	return Refused("The repository has an object of %d bytes in its history, and at most %d MiB are taken: keep large files in Git LFS, or set git.depth: 1 if it is no file of today.", size, maxObject>>20)
}

// A beginning keeps the first bytes that are written to it.
type beginning struct{ bytes.Buffer }

func (b *beginning) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, 2*binary.MaxVarintLen64-b.Len()))])
	return len(p), nil
}

// targetSize returns the size of a delta's result, which is the second number in it; zero if there is none.
func (b *beginning) targetSize() uint64 {
	_, _ = binary.ReadUvarint(&b.Buffer) // of what it is made from
	size, err := binary.ReadUvarint(&b.Buffer)
	if err != nil {
		return 0
	}
	return size
}

const (
	// fileFlags open a file without blocking: opening a pipe without a writer would block
	// forever.
	fileFlags = os.O_RDONLY | syscall.O_NONBLOCK
	// dirFlags open directories only.
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

// blob returns the object of a regular file's content. It writes the object unless the content is a known version.
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

// isReplaced reports whether an error means that a file of another type replaced the file that was just listed. Package
// os itself reports a link that leaves the root; the system reports the others.
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
