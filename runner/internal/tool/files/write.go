package files

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/deckhand-dev/deckhand/internal/shared/quote"
	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

//go:embed write.md
var writePage string

type writeIn struct {
	Path    string `json:"path" jsonschema:"the file, absolute or relative to the workspace"`
	Content string `json:"content" jsonschema:"all that the file is to contain"`
}

func (t *Toolset) write() tool.Tool {
	made := tool.Typed(changing(NameWrite, writePage, tool.Idempotent), func(ctx context.Context, _ tool.Call, in writeIn) (tool.Result, error) {
		at, err := t.view.resolve(in.Path)
		if err != nil {
			return t.view.failed(in.Path, err)
		}
		if strings.ContainsFunc(in.Path, unicode.IsControl) { // it would deceive people and rules
			return tool.Fail("Not a usable path: "+quote.Clip(strconv.Quote(in.Path), maxQuote), "Choose a name without line ends and other control characters."), nil
		}
		written, err := t.overwrite(ctx, at, in.Content)
		if err != nil {
			return t.view.failed(in.Path, &writeError{err})
		}
		done := "Wrote"
		if written.Created {
			done = "Created"
		}
		summary := fmt.Sprintf("%s %s (%s)", done, t.view.name(at), size(int64(written.Bytes)))
		if written.note != "" {
			summary += "." + written.note
		}
		return tool.Result{Text: summary, Summary: summary}, nil
	})
	made.Canonicalize = t.canonicalPath
	return made
}

// overwritten is the result of a write, with facts for the model.
type overwritten struct {
	backend.Written
	note string
}

// overwrite writes a file that is new, or that has not changed since the session last read it.
func (t *Toolset) overwrite(ctx context.Context, at, content string) (overwritten, error) {
	s := t.states.lock(at)
	defer s.Unlock()
	p, err := t.plan(ctx, at, content, s)
	if err != nil {
		return overwritten{}, err
	}
	written, err := t.backend.Write(ctx, at, []byte(p.content), p.when)
	switch {
	case err == nil:
		s.set(written.Version)
		t.changes.add(at)
	case p.refusal != nil && (errors.Is(err, backend.ErrExists) || errors.Is(err, backend.ErrChanged)):
		err = p.refusal
	}
	return overwritten{written, p.note}, err
}

// A writing is how a file is written.
type writing struct {
	content string
	// when is the version that is replaced. Absent does not replace an existing file, but succeeds if the file already
	// has the content, so that a call can be repeated after a crash.
	when    backend.Version
	refusal error // why a file that exists must not be replaced, if Write refuses
	note    string
}

// plan returns how to write content over the current file. The backend refuses the write if the file changes in
// between.
func (t *Toolset) plan(ctx context.Context, at, content string, s *readState) (writing, error) {
	w := writing{content: content, when: backend.Absent}
	now, err := t.backend.Read(ctx, at, backend.Window{})
	switch {
	case errors.Is(err, backend.ErrNotFound):
		if s.read {
			w.note = " The file had been removed since it was last read or written."
		}
		return w, nil
	case errors.Is(err, backend.ErrBinary), errors.Is(err, backend.ErrTooLarge):
		w.refusal = err
		if s.read && s.version != backend.Any {
			w.when = s.version // binary content that the session wrote
		}
		return w, nil
	case err != nil:
		return w, err
	}
	w.content = now.Format.Apply(content)
	w.note = formatNote(content, w.content, now.Format)
	if !s.read {
		return w, nil
	}
	w.when = s.version
	if s.version == backend.Any {
		w.when = now.Version
	}
	if n := now.Format.Invalid; n > 0 && w.when == now.Version {
		w.when, w.refusal = backend.Absent, &invalidError{count: n}
	}
	return w, nil
}

// formatNote describes how the format of a file changed the written content.
func formatNote(given, written string, f backend.Format) string {
	note := ""
	plain := strings.Contains(given, "\n") && !strings.Contains(given, "\r\n")
	crlf := plain && strings.Contains(written, "\r\n")
	switch {
	case crlf && f.LF > 0:
		note = " The file had mixed line ends: all are now CRLF."
	case crlf:
		note = " CRLF line ends were kept."
	case plain && f.CRLF > 0:
		note = " The file had mixed line ends: all are now LF."
	}
	if len(backend.Format{BOM: f.BOM}.Apply(given)) > len(given) {
		note += " The byte order mark was kept."
	}
	return note
}

// An invalidError means that a file has bytes that are not UTF-8, which a model
// cannot write.
type invalidError struct {
	count int64
}

func (e *invalidError) Error() string {
	return fmt.Sprintf("has %d %s not UTF-8", e.count, plural(e.count, "byte that is", "bytes that are"))
}

// A writeError is a failed write.
type writeError struct{ err error }

func (e *writeError) Error() string { return e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

//go:embed edit.md
var editPage string

type editIn struct {
	Path       string `json:"path" jsonschema:"the file, absolute or relative to the workspace"`
	OldString  string `json:"old_string" jsonschema:"the text to replace, exactly as it is in the file"`
	NewString  string `json:"new_string" jsonschema:"the text to put there"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"replace every occurrence; default false"`
}

var (
	// errUnread refuses an edit of a file that the session has not read.
	errUnread = errors.New("has not been read")
	// errAbsent refuses an edit that would create a file.
	errAbsent = errors.New("does not exist")
	// errRemoved refuses an edit of a file that the session had read and that a command has removed since.
	errRemoved = errors.New("was removed since it was last read or written")
	// errNumbered refuses an edit whose new text has the line numbers of Read.
	errNumbered = errors.New("begins with the line numbers of Read")
)

func (t *Toolset) edit() tool.Tool {
	made := tool.Typed(changing(NameEdit, editPage, tool.Once), func(ctx context.Context, _ tool.Call, in editIn) (tool.Result, error) {
		at, err := t.view.resolve(in.Path)
		if err != nil {
			return t.view.failed(in.Path, err)
		}
		edited, err := t.replace(ctx, at, backend.Edit{Old: in.OldString, New: in.NewString, All: in.ReplaceAll})
		if in.OldString == "" && errors.Is(err, backend.ErrNotFound) {
			err = errAbsent
		}
		if err != nil {
			return t.view.failed(in.Path, &editError{old: in.OldString, err: err})
		}
		text := fmt.Sprintf("Replaced 1 occurrence in %s, at line %d", t.view.name(at), edited.Line)
		if edited.Replaced > 1 {
			text = fmt.Sprintf("Replaced %d occurrences in %s, the first at line %d", edited.Replaced, t.view.name(at), edited.Line)
		}
		return tool.Result{Text: text, Summary: text}, nil
	})
	made.Canonicalize = t.canonicalPath
	return made
}

// replace edits a file that has not changed since the session last read it.
func (t *Toolset) replace(ctx context.Context, at string, e backend.Edit) (backend.Edited, error) {
	s := t.states.lock(at)
	defer s.Unlock()
	if !s.read {
		// A wrong path is reported before a missing read.
		if _, err := t.backend.Read(ctx, at, backend.Window{}); err != nil {
			return backend.Edited{}, err
		}
		return backend.Edited{}, errUnread
	}
	if err := t.refuseNumbers(ctx, at, e); err != nil {
		return backend.Edited{}, err
	}
	e.When = s.version
	edited, err := t.backend.Edit(ctx, at, e)
	switch {
	case err == nil:
		s.set(edited.Version)
		t.changes.add(at)
	case errors.Is(err, backend.ErrNotFound):
		s.forget()
		err = errRemoved
	}
	return edited, err
}

// lineLabel matches the label that Read puts before a line, or before a part of a long line.
var lineLabel = regexp.MustCompile(`^ *(\d+)(\.\d+)?  `)

// numbered reports whether each line of a text begins like a line shown by Read.
func numbered(text string) bool {
	for _, line := range splitLines(text) {
		if !lineLabel.MatchString(line) {
			return false
		}
	}
	return true
}

// splitLines returns the lines of a text, without their ends.
func splitLines(text string) []string {
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// A copied is a text that looks like consecutive lines shown by Read.
type copied struct {
	first int      // number of the first line
	lines []string // without the numbers
}

// copiedLines returns the lines of a text without their numbers, if each line begins with a number and the numbers
// count up by one. Parts of one line have the same number.
func copiedLines(text string) (copied, bool) {
	var c copied
	for i, line := range splitLines(text) {
		of := lineLabel.FindStringSubmatch(line)
		if of == nil {
			return copied{}, false
		}
		n, err := strconv.Atoi(of[1])
		part := of[2] != ""
		switch {
		case err != nil || n == 0:
			return copied{}, false
		case i == 0:
			c.first = n
		case part && n == c.first+len(c.lines)-1:
			continue
		case part || n != c.first+len(c.lines):
			return copied{}, false
		}
		c.lines = append(c.lines, line[len(of[0]):])
	}
	return c, true
}

// refuseNumbers returns errNumbered for a new text that was copied with the line numbers of Read. Since a file may have
// numbered lines of its own, the numbers must match the file: either the old text is at the first of them, or the file
// has one of the lines at its number and has no numbers there itself.
func (t *Toolset) refuseNumbers(ctx context.Context, at string, e backend.Edit) error {
	c, ok := copiedLines(e.New)
	if !ok || e.Old == "" || numbered(e.Old) {
		return nil
	}
	page, err := t.backend.Read(ctx, at, backend.Window{Offset: c.first - 1, Limit: len(c.lines)})
	if err != nil {
		return nil //nolint:nilerr // Edit reads the same file next: it fails too and reports the cause.
	}
	for i, line := range page.Lines {
		first := i == 0 && strings.HasPrefix(strings.TrimSpace(line), strings.TrimSpace(splitLines(e.Old)[0]))
		same := i < len(c.lines) && line == c.lines[i] && strings.TrimSpace(line) != ""
		if (first || same) && !lineLabel.MatchString(line) {
			return errNumbered
		}
	}
	return nil
}
