package backend

import (
	"context"
	"time"
)

// A Backend is a tree of files. Every path is relative to its root,
// slash-separated, and "." is the root itself. A path that leads outside is
// ErrEscapes.
//
// Only Resolve follows symbolic links. All other methods refuse a path that is a link or
// leads through one with ErrLink: what a policy allowed is what is opened, even if a link
// was created in between.
//
// Every method stops soon after its context ends, with the context's error.
type Backend interface { //nolint:interfacebloat // links belong to the tree: what cannot resolve them cannot be judged
	// Resolve returns the canonical path: with all links followed, at the end of the path
	// too. A file that does not exist yet has the resolved path of its deepest existing
	// directory, followed by the rest unchanged. A link that leads out of the root is
	// ErrEscapes.
	Resolve(ctx context.Context, path string) (string, error)
	// List returns the entries of a directory, sorted by name.
	List(ctx context.Context, dir string) ([]Info, error)
	// Read returns a window of a text file's lines. It holds the window in
	// memory, never the file.
	Read(ctx context.Context, path string, w Window) (Page, error)
	// Write replaces a file atomically, making the directories above it and
	// keeping the mode of a file that was there. It applies only to the Version
	// given, except that writing what is there already always succeeds: a
	// repeated Write is harmless.
	Write(ctx context.Context, path string, data []byte, when Version) (Written, error)
	// Edit replaces text in a file atomically, keeping its mode, byte order mark, line ends
	// and bytes that are not UTF-8. Edits of one file run one after the other.
	Edit(ctx context.Context, path string, e Edit) (Edited, error)
	// Grep finds lines in text files of at most MaxSearch bytes, Glob finds files. Both are
	// bounded, ordered as a tree is read (see Compare), never follow a link to a directory,
	// and pass over what is in a directory named ".git" unless they start inside one. Glob
	// leaves out the files for which skip returns true, before its bound; nil leaves out
	// none. skip may be called from several goroutines at once.
	Grep(ctx context.Context, q Query) (Matches, error)
	Glob(ctx context.Context, pattern, dir string, skip func(Info) bool) (Found, error)
}

// What a backend holds in memory or returns is bounded, whatever is in the
// tree.
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

// How long Grep and Glob look before they return what they have.
const (
	GrepTimeout = 15 * time.Second
	GlobTimeout = 10 * time.Second
)

// A Version names the content of a file: the same content has the same
// version, whatever its age. Backends make them; others only keep them.
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
	// Link says that the entry is a symbolic link; the rest describes what it leads
	// to. Resolve says where that is.
	Link bool
}

// A Window selects lines: Limit of them after skipping Offset. Values out of
// range are clamped, not refused.
type Window struct {
	Offset, Limit int
}

// Clamp returns the window that is meant.
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

// A Format describes what the lines of a Page do not show.
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
