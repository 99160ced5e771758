package files

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/attachment"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/memlimit"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

const (
	defaultLines = 100
	// chunk is the maximum number of characters of a line under one number.
	chunk = 5000
	// maxResult is the maximum number of characters of a result. Larger results of other tools are offloaded whole;
	// results of these tools can be requested in parts.
	maxResult = 80_000
)

const empty = "System reminder: File exists but has empty contents"

//go:embed read.md
var readPage string

type readIn struct {
	Path   string `json:"path" jsonschema:"the file, absolute or relative to the workspace"`
	Offset int    `json:"offset,omitempty" jsonschema:"how many lines to skip; default 0"`
	Limit  *int   `json:"limit,omitempty" jsonschema:"how many lines to show; default 100"`
}

func (t *Toolset) readFile() tool.Tool {
	made := tool.Typed(reading(NameRead, readPage), func(ctx context.Context, _ tool.Call, in readIn) (tool.Result, error) {
		at, err := t.view.resolve(in.Path)
		if err != nil {
			return t.view.failed(in.Path, err)
		}
		file, err := t.show(ctx, at)
		if err == nil {
			return tool.Result{Text: shownText(file), Files: []tool.File{file}, Summary: shownText(file)}, nil
		}
		format, isOther := errors.AsType[*attachment.FormatError](err)
		if notShown, is := errors.AsType[*notShownError](err); is && (!isOther || !format.IsText) {
			return tool.Fail(notShown.Error()), nil
		}
		w := backend.Window{Offset: in.Offset, Limit: defaultLines}
		if in.Limit != nil {
			w.Limit = *in.Limit
		}
		page, err := t.page(ctx, at, w.Clamp())
		if err != nil {
			return t.view.failed(in.Path, err)
		}
		return showPage(page, w.Clamp().Offset), nil
	})
	made.Canonicalize = t.canonicalPath
	return made
}

// page reads a window and records the version that it saw.
func (t *Toolset) page(ctx context.Context, at string, w backend.Window) (backend.Page, error) {
	s := t.states.lock(at)
	defer s.Unlock()
	page, err := t.backend.Read(ctx, at, w)
	switch {
	case err == nil:
		s.set(page.Version)
	case errors.Is(err, backend.ErrNotFound):
		s.forget()
	}
	return page, err
}

// showPage returns a page for the model: numbered lines, and the offset of the rest.
func showPage(page backend.Page, offset int) tool.Result {
	switch {
	case page.Total == 0:
		return tool.Result{Text: empty}
	case len(page.Lines) == 0:
		return tool.Fail(fmt.Sprintf("Line offset %d exceeds file length (%d lines)", offset, page.Total))
	}
	l := listing{width: len(strconv.Itoa(page.Start + len(page.Lines) - 1))}
	shown := 0
	for _, line := range page.Lines {
		if !l.add(page.Start+shown, line) {
			break
		}
		shown++
	}
	end := page.Start + shown - 1
	fmt.Fprintf(&l.text, "[lines %d to %d of %d", page.Start, end, page.Total)
	if end < page.Total {
		fmt.Fprintf(&l.text, "; next_offset: %d", end)
	}
	if l.cut {
		fmt.Fprintf(&l.text, "; line %d is cut: search in it with Grep", end)
	}
	if n := page.Format.Invalid; n > 0 {
		fmt.Fprintf(&l.text, "; %d %s shown as \ufffd: the encoding may be ISO-8859-1 or Windows-1252",
			n, plural(n, "byte of the file is not UTF-8 and is", "bytes of the file are not UTF-8 and are"))
	}
	l.text.WriteString("]")
	return tool.Result{Text: l.text.String(), Summary: fmt.Sprintf("lines %d to %d of %d", page.Start, end, page.Total)}
}

// A listing has numbered lines, at most maxResult characters.
type listing struct {
	text  strings.Builder
	width int
	chars int
	cut   bool // the first line alone was too long
}

// add adds a line if it fits. The first line is added as far as it fits.
func (l *listing) add(number int, line string) bool {
	line = strings.ToValidUTF8(line, string(utf8.RuneError))
	if n := utf8.RuneCountInString(line); l.chars+n > maxResult {
		if l.chars > 0 {
			return false
		}
		line, l.cut = string([]rune(line)[:maxResult]), true
	}
	label := strconv.Itoa(number)
	for part := 1; ; part++ {
		head, rest := split(line)
		fmt.Fprintf(&l.text, "%*s  %s\n", l.width, label, head)
		l.chars += l.width + len("  \n") + utf8.RuneCountInString(head)
		if rest == "" {
			return true
		}
		label, line = fmt.Sprintf("%d.%d", number, part), rest
	}
}

// split returns the part of a line for one number, and the rest.
func split(line string) (head, rest string) {
	n := 0
	for i := range line {
		if n == chunk {
			return line[:i], line[i:]
		}
		n++
	}
	return line, ""
}

// Canonical returns the arguments of a Read of a path, as a policy sees them.
func (t *Toolset) Canonical(ctx context.Context, path string) (json.RawMessage, error) {
	args, err := json.Marshal(map[string]string{"path": path})
	if err != nil {
		return nil, fmt.Errorf("encoding a path: %w", err)
	}
	canonical, refused := t.canonicalPath(ctx, args)
	if refused != nil {
		return nil, errors.New(refused.Message)
	}
	return canonical, nil
}

// ShowArgs returns the image or the document that canonical arguments of Read name.
func (t *Toolset) ShowArgs(ctx context.Context, args json.RawMessage) (tool.File, error) {
	var in readIn
	if err := json.Unmarshal(args, &in); err != nil {
		return tool.File{}, fmt.Errorf("decoding a path: %w", err)
	}
	at, err := t.view.resolve(in.Path)
	if err != nil {
		return tool.File{}, err
	}
	file, err := t.show(ctx, at)
	notShown, isRefused := errors.AsType[*notShownError](err)
	switch {
	case isRefused:
		return file, notShown.err
	case err != nil:
		if failed, err := t.view.failed(in.Path, err); err == nil {
			return file, errors.New(failed.Error.Message)
		}
		return file, err
	}
	return file, nil
}

// show returns an image or a document for the model. For any other file, the error is a notShownError with an
// [attachment.FormatError].
func (t *Toolset) show(ctx context.Context, at string) (tool.File, error) {
	f, err := t.backend.Open(ctx, at)
	if err != nil {
		return tool.File{}, err
	}
	defer f.Close()
	head := make([]byte, attachment.HeadBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return tool.File{}, fmt.Errorf("reading the file: %w", err)
	}
	name := t.view.label(at)
	if err := cmp.Or(attachment.CheckFormat(head[:n]), attachment.CheckSize(f.Size)); err != nil {
		return tool.File{}, &notShownError{name: name, err: err}
	}
	release, err := memlimit.Contents.Acquire(ctx, attachment.MaxBytes)
	if err != nil {
		return tool.File{}, err
	}
	defer release()
	rest, err := io.ReadAll(io.LimitReader(f, attachment.MaxBytes)) // it may have grown: then the store refuses it
	if err != nil {
		return tool.File{}, fmt.Errorf("reading the file: %w", err)
	}
	return tool.File{Name: name, Data: append(head[:n], rest...)}, nil
}

// shownText returns the text beside a file, for models that cannot read files.
func shownText(f tool.File) string { return fmt.Sprintf("%s has %d bytes", f.Name, len(f.Data)) }

// A notShownError means that an image or a document is not shown.
type notShownError struct {
	name string
	err  error
}

func (e *notShownError) Error() string { return e.name + " is not shown: " + e.err.Error() }

func (e *notShownError) Unwrap() error { return e.err }
