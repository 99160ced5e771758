// Package backend is the files that a model sees.
//
// A [Driver] stores a tree of files. A [Backend] over it does what the file tools need: it checks paths, pages, writes
// by version, edits, searches, and bounds all of it. Paths are slash-separated and absolute in the model's view
// ("/workspace/a.go"); a Backend is given paths below the root of its driver. Errors are typed; the file
// tools turn them into texts in one place.
//
// Packages store and state have drivers, and backendtest the suite that all drivers must pass.
package backend

import (
	"context"
	"hash/maphash"
	"io"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/memlimit"
)

// A Backend is a tree of text files over a [Driver]. Every path is relative to its root,
// slash-separated, and "." is the root itself. A path that leads outside is ErrEscapes.
// As of the driver, only Resolve follows symbolic links, and every method stops soon
// after its context ends.
//
// Use one Backend for all that write through one driver: it orders their changes.
type Backend struct {
	driver Driver
	now    func() time.Time
	seed   maphash.Seed
	locks  [64]sync.Mutex // see lock
}

// New makes a Backend of a driver. Searches measure their time by now; nil is the clock of
// the machine.
func New(d Driver, now func() time.Time) *Backend {
	return &Backend{driver: d, now: clock.Or(now), seed: maphash.MakeSeed()}
}

// Resolve returns the canonical path, like Resolve of [Driver].
func (b *Backend) Resolve(ctx context.Context, path string) (string, error) {
	name, err := clean(ctx, path)
	if err == nil {
		name, err = b.driver.Resolve(ctx, name)
	}
	if err != nil {
		return "", failed("resolve", path, err)
	}
	return name, nil
}

// List returns the entries of a directory, sorted by name.
func (b *Backend) List(ctx context.Context, dir string) ([]Info, error) {
	name, err := clean(ctx, dir)
	if err != nil {
		return nil, failed("list", dir, err)
	}
	infos, err := b.driver.List(ctx, name)
	return infos, failed("list", dir, err)
}

// Read returns a window of a text file's lines. It holds the window in memory, never
// the file.
func (b *Backend) Read(ctx context.Context, path string, w Window) (Page, error) {
	page, err := b.read(ctx, path, w)
	if err != nil {
		return Page{}, failed("read", path, err)
	}
	return page, nil
}

func (b *Backend) read(ctx context.Context, path string, w Window) (Page, error) {
	name, err := clean(ctx, path)
	if err != nil {
		return Page{}, err
	}
	f, err := b.driver.Open(ctx, name)
	if err != nil {
		return Page{}, err
	}
	defer f.Close()
	if err := within(f.Size, MaxRead); err != nil {
		return Page{}, err
	}
	release, err := memlimit.Contents.Acquire(ctx, pageMemory)
	if err != nil {
		return Page{}, err
	}
	defer release()
	return readPage(bounded(ctx, f, MaxRead), w)
}

// Open opens a regular file for reading its bytes.
func (b *Backend) Open(ctx context.Context, path string) (*File, error) {
	name, err := clean(ctx, path)
	if err != nil {
		return nil, failed("read", path, err)
	}
	f, err := b.driver.Open(ctx, name)
	if err != nil {
		return nil, failed("read", path, err)
	}
	return f, nil
}

// clean returns a path as a driver is given it.
func clean(ctx context.Context, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return Clean(name)
}

// within fails for a file over a limit.
func within(size, limit int64) error {
	if size > limit {
		return &TooLargeError{Size: size, Limit: limit}
	}
	return nil
}

// bounded returns a reader of f that fails once it has read more than limit bytes, and once ctx has ended.
func bounded(ctx context.Context, f io.Reader, limit int64) io.Reader {
	return &reader{ctx: ctx, from: f, left: limit, limit: limit}
}

type reader struct {
	ctx         context.Context
	from        io.Reader
	left, limit int64
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.from.Read(p)
	if r.left -= int64(n); r.left < 0 {
		return 0, &TooLargeError{Size: r.limit - r.left, Limit: r.limit}
	}
	return n, err
}

// Bounds of what a backend holds in memory or returns, for any tree.
const (
	MaxRead      = 256 << 20 // bytes of a file that Read scans
	MaxEdit      = 10 << 20  // bytes of a file that Edit changes
	MaxSearch    = 10 << 20  // bytes of a file that Grep looks into
	MaxPage      = 1 << 20   // bytes of a Page; a longer line is cut
	MaxLines     = 10_000    // lines of a Page
	MaxFound     = 1_000     // files that Glob returns
	MaxMatches   = 1_000     // matches that Grep returns
	MaxMatchText = 1_000     // bytes of a Match's text
	MaxPattern   = 1_000     // bytes of a pattern
)

// How long Grep and Glob search before they return what they found so far.
const (
	GrepTimeout = 15 * time.Second
	GlobTimeout = 10 * time.Second
)

// A Version identifies the content of a file: equal contents have equal versions, independent of age and driver.
type Version string

// The versions that name no content.
const (
	Any    Version = ""       // whatever is there, or nothing
	Absent Version = "absent" // no file
)

// Info describes one file or directory.
type Info struct {
	Path    string
	Size    int64
	Dir     bool
	ModTime time.Time
	// Link reports that the entry is a symbolic link; the other fields describe its target. Resolve returns where that
	// is.
	Link bool
	// Irregular reports that the entry is neither a file nor a directory: a pipe, a socket, a device, or a link without
	// a target inside the root.
	Irregular bool
}

// A Window selects lines: Limit of them after skipping Offset. Values out of
// range are clamped, not refused.
type Window struct {
	Offset, Limit int
}

// Clamp returns the window with its offset and its limit within their bounds.
func (w Window) Clamp() Window {
	return Window{Offset: max(w.Offset, 0), Limit: min(max(w.Limit, 1), MaxLines)}
}

// A Page is a window of a file.
type Page struct {
	Lines   []string // without line ends and byte order mark
	Start   int      // number of the first line, from 1; 0 when Lines is empty
	Total   int      // lines in the whole file
	Version Version  // of the whole file
	Format  Format   // of the whole file
}

// A Format describes properties of a text file that the lines of a Page do not show.
type Format struct {
	BOM      bool  // the file begins with the byte order mark of UTF-8
	CRLF, LF int   // lines that end in "\r\n", and in "\n" alone
	Invalid  int64 // bytes that are not UTF-8
}

// Written reports a write.
type Written struct {
	Created bool
	Bytes   int
	Version Version
}

// An Edit replaces Old by New: where it is unique, or everywhere with All. Old
// is text as Read shows it, with "\n" for any line end. New takes the line ends
// of the file.
type Edit struct {
	Old, New string
	All      bool
	When     Version // the only version to which the edit applies
}

// Edited reports an edit.
type Edited struct {
	Replaced int
	Line     int // the line, from 1, of the first replacement
	Version  Version
}

// A Query asks for lines that match a pattern.
type Query struct {
	Pattern    string // RE2, or literal text with Fixed
	Fixed      bool
	IgnoreCase bool
	Dir        string // where to look, empty: the root; a single file is allowed
	Glob       string // which files below Dir, as for Glob; empty: all
	ByFile     bool   // one match for each file: its first, with the Count of all
	Limit      int    // most matches to return; out of range: MaxMatches
	// Skip returns true for a file to leave out; nil leaves out none. It is called
	// for each file to search, also for Dir if that is a file, before the file is
	// read: whether it is called must not depend on the content of the file. It may
	// be called from several goroutines at once.
	Skip func(path string) bool
}

// A Match is one line that matched.
type Match struct {
	Path  string
	Line  int
	Text  string // without line end; of a long line, what is around the match
	Count int    // with Query.ByFile: how many lines of the file match
}

// Matches are the lines found; Truncated when a limit or the time cut them.
type Matches struct {
	Items     []Match
	Truncated bool
}

// Found are the files found; Truncated when a limit or the time cut them.
type Found struct {
	Items     []Info
	Truncated bool
}

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
