package backend

import (
	"context"
	"io"
)

// A Driver stores a tree of files. A new kind of storage implements it; New makes a [Backend] of it, which does
// everything else.
//
// Every path that it is given is relative to its root, clean and slash-separated, and "." is the root itself. Only
// Resolve follows symbolic links. All other methods refuse a path that is a link or leads through one with ErrLink. So
// exactly the file that a policy allowed is opened, even if a link was created in between. Errors are those of this
// package, wrapped or not; the Backend adds the operation and the path.
//
// All methods are safe for concurrent use and stop soon after their context ends, with the context's error. What they
// hold in memory is bounded.
type Driver interface {
	// Resolve returns the canonical path: with all links followed, at the end of the path
	// too. A file that does not exist yet has the resolved path of its deepest existing
	// directory, followed by the rest unchanged. A link that leads out of the root is
	// ErrEscapes. Without links it is the path itself.
	Resolve(ctx context.Context, path string) (string, error)
	// List returns the entries of a directory, sorted by name. It is ErrNotDir for
	// anything else that exists. The root exists even if it is empty.
	List(ctx context.Context, dir string) ([]Info, error)
	// Open opens a regular file for reading. The error is ErrNotFound if it does not exist, ErrNotDir below a file,
	// ErrIsDir for a directory, and ErrNotFile for anything else.
	Open(ctx context.Context, path string) (*File, error)
	// Write replaces the content of a file that has the Revision given, or with None creates the file and the
	// directories above it. Otherwise the error is ErrChanged. It is ErrTooLarge for more than the driver stores in one
	// file, ErrNoSpace if nothing more fits, and a ReadOnlyError if files cannot be changed. It is atomic: a reader has
	// the content before or after it, and after an error the file is as it was.
	//
	// A Backend opens a file before it writes it, and never writes one file twice at once. The Revision is for writers
	// elsewhere.
	Write(ctx context.Context, path string, data []byte, when Revision) error
}

// A File is a file that is open for reading. It has the content of the time when it was opened.
type File struct {
	io.ReadCloser
	Size     int64
	Revision Revision
	// ReadOnly is why the file cannot be written, if that is known when it is opened.
	// A Backend then reports it before anything else about a change.
	ReadOnly error
}

// A Revision names one state of a file, such as an ETag or the version column of a
// row. Only the driver that made it compares it.
type Revision string

// None is the Revision of a file that does not exist.
const None Revision = ""
