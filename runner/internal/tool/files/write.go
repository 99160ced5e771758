package files

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
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
