package files

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/internal/shared/quote"
	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// truncated ends a list that is cut.
const truncated = "... [results truncated, try being more specific with your parameters]"

// maxQuote bounds a text that an error quotes, in bytes: the model wrote it and has it whole.
const maxQuote = 500

// failed is the only place where an error becomes text for the model. It returns an error only if the context of the
// call has ended, which the loop handles.
func (v View) failed(name string, err error) (tool.Result, error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return tool.Result{}, err
	}
	if name == "" {
		name = v.Home
	}
	for _, words := range []func(string, error) (tool.Result, bool){ofPattern, v.ofPath, ofContent, ofEdit} {
		if result, ok := words(name, err); ok {
			return result, nil
		}
	}
	return tool.Fail(fmt.Sprintf("'%s': %v", name, err)), nil
}

// ofPath describes an error about the location of a path.
func (v View) ofPath(name string, err error) (tool.Result, bool) {
	var (
		outside  *backend.OutsideError
		readOnly *backend.ReadOnlyError
		absolute *backend.AbsoluteLinkError
	)
	places := strings.Join(v.Places, ", ")
	below := fmt.Sprintf("Use a path below %s, such as %s.", places, path.Join(v.Home, "file.txt"))
	switch {
	case errors.Is(err, errClimbs):
		return tool.Fail("Path traversal not allowed: "+name, below), true
	case errors.Is(err, errWindows):
		return tool.Fail("Windows absolute paths are not supported: "+name, below), true
	case errors.Is(err, errOutside), errors.As(err, &outside):
		return tool.Fail(fmt.Sprintf("Path '%s' is outside %s", name, places), below), true
	case errors.As(err, &readOnly):
		return tool.Fail(fmt.Sprintf("permission denied for write on %s", name),
			fmt.Sprintf("%s is read-only. Write below %s.", readOnly.Path, v.Home)), true
	case errors.As(err, &absolute):
		return tool.Fail(fmt.Sprintf("Path '%s' %v", name, absolute), "Use the path that the link leads to, or make it a relative link."), true
	case errors.Is(err, backend.ErrEscapes):
		return tool.Fail(fmt.Sprintf("Path '%s' leads outside %s", name, v.deepestDir(name)), below), true
	case errors.Is(err, backend.ErrLink):
		return tool.Fail(fmt.Sprintf("Path '%s' became a symbolic link since the call was checked", name),
			"Repeat the call: its path is then checked again. Read the file before you change it."), true
	case errors.Is(err, backend.ErrBadName):
		return tool.Fail("Not a usable path: " + quote.Clip(strconv.Quote(name), maxQuote)), true
	case errors.Is(err, backend.ErrNotFound):
		return tool.Fail(fmt.Sprintf("File '%s' not found", name), "Find it with Glob or Ls."), true
	case errors.Is(err, backend.ErrIsDir):
		return tool.Fail(fmt.Sprintf("'%s' is a directory", name), "List it with Ls."), true
	case errors.Is(err, backend.ErrNotDir):
		return tool.Fail(fmt.Sprintf("A part of the path '%s' is a file, not a directory", name)), true
	}
	return tool.Result{}, false
}

// ofContent describes an error about the content of a file.
func ofContent(name string, err error) (tool.Result, bool) {
	var (
		large       *backend.TooLargeError
		undecodable *invalidError
	)
	switch {
	case errors.As(err, &large):
		return tool.Fail(fmt.Sprintf("File '%s' is too large: %s; the limit is %s", name, size(large.Size), size(large.Limit))), true
	case errors.Is(err, backend.ErrNotFile):
		return tool.Fail(fmt.Sprintf("'%s' is not a regular file", name)), true
	case errors.Is(err, backend.ErrBinary):
		return notText(name, err), true
	case errors.As(err, &undecodable):
		return tool.Fail(fmt.Sprintf("File '%s' %v: Write would lose %s", name, undecodable, plural(undecodable.count, "it", "them")),
			"Change parts of the file with Edit, which keeps such bytes.",
			"Or convert it to UTF-8 with a command such as iconv, or remove it with a command if its content is not needed. Then Write."), true
	case errors.Is(err, backend.ErrDenied):
		return tool.Fail(fmt.Sprintf("permission denied for %s on %s", act(err), name)), true
	case errors.Is(err, backend.ErrNoSpace):
		return tool.Fail(fmt.Sprintf("No space left: '%s' was not written and is as it was", name), "Remove files that are not needed."), true
	case errors.Is(err, backend.ErrExists):
		return tool.Fail(fmt.Sprintf("You must read the file before overwriting it: '%s' exists and has not been read", name), "Read it, then Write or Edit."), true
	case errors.Is(err, backend.ErrChanged):
		return tool.Fail(fmt.Sprintf("File '%s' was modified since it was read", name), "Read it again, then repeat the change if it still applies."), true
	}
	return tool.Result{}, false
}

// notText reports that a file is binary, or has another encoding.
func notText(name string, err error) tool.Result {
	if encoded, ok := errors.AsType[*backend.EncodingError](err); ok {
		return tool.Fail(fmt.Sprintf("File '%s' %v", name, encoded), "Convert it to UTF-8 with a command such as iconv.")
	}
	message := fmt.Sprintf("File '%s' is binary, not text", name)
	if _, writing := errors.AsType[*writeError](err); writing {
		return tool.Fail(message, "Write replaces text files only. If the content is not needed, remove the file with a command, then Write.")
	}
	return tool.Fail(message)
}

// act names the operation that was not permitted.
func act(err error) string {
	of, ok := errors.AsType[*backend.PathError](err)
	if ok && (of.Op == "write" || of.Op == "edit") {
		return "write"
	}
	return "read"
}

// An editError is a failed edit with the text that it should replace.
type editError struct {
	old string
	err error
}

func (e *editError) Error() string { return e.err.Error() }
func (e *editError) Unwrap() error { return e.err }

// ofEdit describes why a text was not replaced.
func ofEdit(name string, err error) (tool.Result, bool) {
	var (
		edit    *editError
		several *backend.NotUniqueError
		none    *backend.NoMatchError
	)
	switch {
	case !errors.As(err, &edit):
		return tool.Result{}, false
	case errors.Is(err, errUnread):
		return tool.Fail(fmt.Sprintf("You must read the file before editing it: '%s' has not been read", name), "Read it, then Edit."), true
	case errors.Is(err, errAbsent):
		return tool.Fail(fmt.Sprintf("File '%s' not found: Edit changes files that exist", name), "Create it with Write."), true
	case errors.Is(err, errRemoved):
		return tool.Fail(fmt.Sprintf("File '%s' not found: it %v", name, err), "Write it again, or find where it is with Glob."), true
	case errors.Is(err, errNumbered):
		return tool.Fail("Each line of new_string begins with a line number that Read shows: the numbers are not part of the file",
			"Leave out each number and the two spaces after it.",
			"If the file is to have them, include a line without a number in old_string and new_string."), true
	case errors.Is(err, backend.ErrLineEnds):
		return tool.Fail("old_string and new_string differ in line ends only, which Edit keeps as they are in the file",
			`Change line ends with a command such as sed -i 's/\r$//'.`), true
	case errors.Is(err, backend.ErrIdentical):
		return tool.Fail("old_string and new_string are the same: there is nothing to change"), true
	case errors.As(err, &several):
		return tool.Fail(fmt.Sprintf("String '%s' appears %d times in file. Use replace_all=True to replace all instances, "+
			"or provide a more specific string with surrounding context.", quote.Clip(edit.old, maxQuote), several.Count),
			"It is in "+lines(several)+"."), true
	case errors.As(err, &none):
		return notFound(edit.old, none), true
	}
	return tool.Result{}, false
}

func notFound(old string, none *backend.NoMatchError) tool.Result {
	const newline = "old_string ends with a newline, but the file does not end with a newline. "
	switch {
	case none.Hint == backend.HintFinalNewline && none.Count == 1:
		return tool.Fail(newline + "Retry with the trailing newline removed from old_string " +
			"(and from new_string if it also ends with a newline).")
	case none.Hint == backend.HintFinalNewline:
		return tool.Fail(newline + fmt.Sprintf("With the trailing newline removed, old_string would appear %d times in the file. "+
			"Retry with the trailing newline removed and add surrounding context so the match is unique.", none.Count))
	}
	message := fmt.Sprintf("String not found in file: '%s'", quote.Clip(old, maxQuote))
	switch {
	case old == "":
		return tool.Fail("old_string is empty", "Put the text to replace there; use Write to replace the whole file.")
	case none.Hint == backend.HintWhitespace:
		return tool.Fail(message, fmt.Sprintf("Line %d differs from it in white space only: copy it exactly as Read shows it.", none.Line))
	case strings.ContainsRune(old, utf8.RuneError):
		return tool.Fail(message, "Read shows bytes that are not UTF-8 as \ufffd. Leave them out of old_string and new_string: Edit keeps them.")
	case none.Hint == backend.HintLineNumbers, numbered(old):
		return tool.Fail(message, "Leave out the line numbers that Read puts before each line.")
	}
	return tool.Fail(message, "Read the file again: the text must match exactly, white space included.")
}

// ofPattern describes an invalid pattern.
func ofPattern(_ string, err error) (tool.Result, bool) {
	var wrong *backend.PatternError
	switch {
	case !errors.As(err, &wrong):
		return tool.Result{}, false
	case errors.Is(wrong.Err, backend.ErrEscapes):
		return tool.Fail("Path traversal not allowed: "+wrong.Pattern, "Say where to look in path, and what to look for in the pattern."), true
	}
	return tool.Fail(fmt.Sprintf("The pattern '%s' is not valid: %v", wrong.Pattern, wrong.Err),
		"For Grep, write an RE2 expression (no look-around, no back-references), or set fixed to true to search for the text as it is.",
		"For Glob, write a pattern such as **/*.go or src/*.{ts,tsx}."), true
}

// lines names the lines where a text occurs that is not unique.
func lines(e *backend.NotUniqueError) string {
	numbers := make([]string, len(e.Lines))
	for i, n := range e.Lines {
		numbers[i] = strconv.Itoa(n)
	}
	text := "lines " + strings.Join(numbers, ", ")
	if e.Count > len(e.Lines) {
		text += " and more"
	}
	return text
}

// plural returns one of two words, by a count.
func plural(n int64, one, several string) string {
	if n == 1 {
		return one
	}
	return several
}

// size returns a number of bytes for users.
func size(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
