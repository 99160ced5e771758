package backend

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Errors of a backend, to be found with errors.Is.
var (
	ErrNotFound  = errors.New("not found")
	ErrExists    = errors.New("exists already")
	ErrChanged   = errors.New("has changed since it was read")
	ErrIsDir     = errors.New("is a directory")
	ErrNotDir    = errors.New("is not a directory")
	ErrNotFile   = errors.New("is not a regular file")
	ErrEscapes   = errors.New("leads outside the root")
	ErrLink      = errors.New("is a symbolic link, or leads through one; resolve it first")
	ErrDenied    = errors.New("permission denied")
	ErrTooLarge  = errors.New("is too large")
	ErrBadName   = errors.New("is not a usable name")
	ErrBinary    = errors.New("is not text")
	ErrNoSpace   = errors.New("no space left")
	ErrIdentical = errors.New("old and new text are the same")
	ErrLineEnds  = errors.New("old and new text differ in line ends only")
)

// A PathError names the path on which an operation failed. Err is one of the errors above, an error of the system, or
// both.
type PathError struct {
	Op   string // the method's name in lower case; "resolve" for a path refused as such
	Path string
	Err  error
}

func (e *PathError) Error() string {
	return fmt.Sprintf("%s %q: %v", e.Op, e.Path, e.Err)
}

func (e *PathError) Unwrap() error { return e.Err }

// failed returns the error of an operation, unless it already is a PathError or the error of a context.
func failed(op, name string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if _, already := errors.AsType[*PathError](err); already {
		return err
	}
	return &PathError{Op: op, Path: name, Err: err}
}

// An AbsoluteLinkError means that a path leads through a link to an absolute path.
// No such link is followed, wherever it leads. It is ErrEscapes.
type AbsoluteLinkError struct{}

func (*AbsoluteLinkError) Error() string {
	return "leads through a link to an absolute path, which is not followed"
}

// Is makes the error ErrEscapes.
func (*AbsoluteLinkError) Is(target error) bool { return target == ErrEscapes }

// A TooLargeError means that a file is over a limit. It is ErrTooLarge.
type TooLargeError struct {
	Size, Limit int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("is too large: %d bytes, the limit is %d", e.Size, e.Limit)
}

// Is makes the error ErrTooLarge.
func (*TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// An EncodingError means that a file is text in an encoding that is not read,
// such as UTF-16. It is ErrBinary.
type EncodingError struct {
	Encoding string
}

func (e *EncodingError) Error() string { return "is " + e.Encoding + " text, not UTF-8" }

// Is makes the error ErrBinary.
func (*EncodingError) Is(target error) bool { return target == ErrBinary }

// An OutsideError means that a path is outside of all places. It is ErrNotFound.
type OutsideError struct {
	Places []string // sorted
}

func (e *OutsideError) Error() string {
	return "is outside of the places for files: " + strings.Join(e.Places, ", ")
}

// Is makes the error ErrNotFound.
func (*OutsideError) Is(target error) bool { return target == ErrNotFound }

// A ReadOnlyError means that Path cannot be written. It is ErrDenied.
type ReadOnlyError struct {
	Path string
}

func (e *ReadOnlyError) Error() string { return fmt.Sprintf("%s is read-only", e.Path) }

// Is makes the error ErrDenied.
func (*ReadOnlyError) Is(target error) bool { return target == ErrDenied }

// A NotUniqueError means that the text to replace occurs more than once.
type NotUniqueError struct {
	Count int
	Lines []int // where, at most MaxNotUniqueLines
}

// MaxNotUniqueLines bounds NotUniqueError.Lines.
const MaxNotUniqueLines = 10

func (e *NotUniqueError) Error() string {
	return fmt.Sprintf("the text appears %d times", e.Count)
}

// A NoMatchError means that the text to replace does not occur.
type NoMatchError struct {
	Hint  Hint
	Count int // with HintFinalNewline: occurrences without the line end
	Line  int // with HintWhitespace and HintLineNumbers: where the text nearly is
}

func (*NoMatchError) Error() string {
	return "the text does not appear"
}

// A Hint describes a similar text if the text of an edit does not occur.
type Hint string

// Kinds of similar texts.
const (
	NoHint           Hint = ""
	HintFinalNewline Hint = "FinalNewline" // the text ends the file, but for the line end
	HintWhitespace   Hint = "Whitespace"   // only spaces, tabs or blank edges differ
	HintLineNumbers  Hint = "LineNumbers"  // lines of the text begin with numbers, which are not in the file
)

// A PatternError means that a pattern is not usable.
type PatternError struct {
	Pattern string
	Err     error
}

func (e *PatternError) Error() string {
	return fmt.Sprintf("the pattern %q is wrong: %v", e.Pattern, e.Err)
}

func (e *PatternError) Unwrap() error { return e.Err }
