package backend

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Backend is a tree of files. Every path is relative to its root, cleaned,
// and "." is the root itself; a path that leads outside is ErrEscapes, also
// when a symbolic link leads it there while the call runs.
type Backend interface {
	// List returns the entries of a directory, sorted by name.
	List(ctx context.Context, dir string) ([]Info, error)
	// Read returns a window of a file's lines.
	Read(ctx context.Context, path string, w Window) (Page, error)
	// Write replaces a file atomically, making the directories above it.
	Write(ctx context.Context, path string, data []byte) (Written, error)
	// Edit replaces text in a file atomically, keeping its mode, byte order mark
	// and line ends.
	Edit(ctx context.Context, path string, e Edit) (Edited, error)
	// Grep finds lines; Glob finds files. Both are sorted and bounded.
	Grep(ctx context.Context, q Query) (Matches, error)
	Glob(ctx context.Context, pattern, dir string) (Found, error)
}

// Info describes one file or directory.
type Info struct {
	Path    string
	Size    int64
	Dir     bool
	ModTime time.Time
}

// A Window selects lines: Limit of them after skipping Offset. Values out of
// range are clamped, not refused.
type Window struct {
	Offset, Limit int
}

// A Page is a window of a file.
type Page struct {
	Lines []string // without line ends
	Start int      // number of the first line, from 1; 0 when Lines is empty
	Total int      // lines in the whole file
}

// Written reports a write.
type Written struct {
	Created bool
	Bytes   int
}

// An Edit replaces Old by New: where it is unique, or everywhere with All.
type Edit struct {
	Old, New string
	All      bool
}

// Edited reports an edit.
type Edited struct {
	Replaced int
	Line     int // the line, from 1, of the first replacement
}

// A Query asks for lines that match a pattern.
type Query struct {
	Pattern    string // RE2, or literal text with Fixed
	Fixed      bool
	IgnoreCase bool
	Dir        string // where to look; a single file is allowed
	Glob       string // which files; empty: all
	Limit      int    // most matches to return
}

// A Match is one line that matched.
type Match struct {
	Path string
	Line int
	Text string
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

// Errors of a backend, to be found with errors.Is.
var (
	ErrNotFound  = errors.New("not found")
	ErrIsDir     = errors.New("is a directory")
	ErrNotDir    = errors.New("is not a directory")
	ErrNotFile   = errors.New("is not a regular file")
	ErrEscapes   = errors.New("leads outside the root")
	ErrDenied    = errors.New("permission denied")
	ErrTooLarge  = errors.New("is too large")
	ErrBadName   = errors.New("is not a usable name")
	ErrBinary    = errors.New("is not text")
	ErrNoSpace   = errors.New("no space left")
	ErrIdentical = errors.New("old and new text are the same")
)

// A NotUniqueError means that the text to replace occurs more than once.
type NotUniqueError struct {
	Count int
	Lines []int // where, at most ten
}

func (e *NotUniqueError) Error() string {
	return fmt.Sprintf("the text appears %d times", e.Count)
}

// A NoMatchError means that the text to replace does not occur.
type NoMatchError struct {
	Hint string // what is nearly there; may be empty
}

func (e *NoMatchError) Error() string {
	return "the text does not appear"
}

// A PatternError means that a pattern does not compile.
type PatternError struct {
	Pattern string
	Err     error
}

func (e *PatternError) Error() string {
	return fmt.Sprintf("the pattern %q is wrong: %v", e.Pattern, e.Err)
}

func (e *PatternError) Unwrap() error { return e.Err }
