package git

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// maxObject bounds an object of a pack, which go-git has whole in memory while it makes the index of the
// pack, in bytes. The large servers of repositories take no larger file.
const maxObject = 100 << 20

// A packReader hands on a pack, and ends with a [RefusedError] where an object is too large: its size
// stands before its content. It scans the pack beside whoever reads.
type packReader struct {
	from    io.Reader
	to      *io.PipeWriter
	scanned chan error
	// failed is why the pack did not arrive; nil: it did.
	failed error
}

// newPackReader reads a pack; close it.
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

// Read implements io.Reader. It is at the end only if the whole pack was scanned.
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

// close ends the scan, and returns why the pack cannot be used, by the error of whoever read it.
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

// targetSize returns the size of what a delta makes, which is the second number in it; zero if there is
// none.
func (b *beginning) targetSize() uint64 {
	_, _ = binary.ReadUvarint(&b.Buffer) // of what it is made from
	size, err := binary.ReadUvarint(&b.Buffer)
	if err != nil {
		return 0
	}
	return size
}
