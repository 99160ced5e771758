package files

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/attachment"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/memlimit"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

const (
	defaultLines = 100
	// chunk is how many characters of a line are shown under one number.
	chunk = 5000
	// maxResult is how many characters a result has at most. It is what counts as
	// large for the results of other tools, which are put aside whole; ours can be
	// asked for in parts.
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

// page reads a window and remembers what was seen.
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

// showPage is a page as the model reads it: numbered lines, and where to go on.
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

// A listing is numbered lines, of maxResult characters at most.
type listing struct {
	text  strings.Builder
	width int
	chars int
	cut   bool // the first line alone was too long
}

// add adds a line if it fits, the first one as far as it fits.
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

// split returns what of a line goes under one number, and what is left.
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

// show returns an image or a document for the model. The error of a file that is neither is a
// notShownError with an [attachment.FormatError].
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

// shownText is the text beside a file, for models that take none as well.
func shownText(f tool.File) string { return fmt.Sprintf("%s has %d bytes", f.Name, len(f.Data)) }

// A notShownError means that an image or a document is not shown.
type notShownError struct {
	name string
	err  error
}

func (e *notShownError) Error() string { return e.name + " is not shown: " + e.err.Error() }

func (e *notShownError) Unwrap() error { return e.err }

// A View is how a model knows the files of a backend. Its paths are absolute
// and clean.
type View struct {
	// Root is what the model calls the root of the backend; empty: "/".
	Root string
	// Home is where relative paths begin, and where the work is: what is changed
	// elsewhere is not counted as changed. Empty: the Root.
	Home string
	// Places are the directories that the model is shown; empty: only Root.
	Places []string
}

func (v View) clean() View {
	v.Root = path.Clean("/" + v.Root)
	v.Home = path.Clean("/" + cmp.Or(v.Home, v.Root))
	if len(v.Places) == 0 {
		v.Places = []string{v.Root}
	}
	return v
}

// Ways in which a path is not one of ours; words.go says them.
var (
	errWindows = errors.New("is a path of Windows")
	errOutside = errors.New("is not below the root")
	errClimbs  = errors.New("goes up")
)

// resolve turns a path as the model writes it, absolute below the root or
// relative to home, into the backend's.
func (v View) resolve(name string) (string, error) {
	// What backends refuse is refused here for the whole path: one that leaves
	// the root and comes back is not let through because of where it ends.
	_, err := backend.Clean(strings.TrimLeft(name, "/"))
	switch {
	case errors.Is(err, backend.ErrEscapes):
		return "", errClimbs
	case err != nil:
		return "", err
	case driveLetter(name):
		return "", errWindows
	}
	full := path.Clean(name)
	if !path.IsAbs(name) {
		full = path.Join(v.Home, name)
	}
	if !within(v.Root, full) {
		return "", errOutside
	}
	return v.below(full), nil
}

// within reports whether a clean path is dir or below it.
func within(dir, name string) bool {
	return dir == "/" || name == dir || strings.HasPrefix(name, dir+"/")
}

// below is the backend's path of a clean one below the root.
func (v View) below(full string) string {
	return path.Clean(strings.TrimPrefix(strings.TrimPrefix(full, v.Root), "/"))
}

// name is what the model calls a path of the backend.
func (v View) name(at string) string { return path.Join(v.Root, at) }

// deepestDir is the deepest of the places that a path belongs to.
func (v View) deepestDir(name string) string {
	if !path.IsAbs(name) {
		name = path.Join(v.Home, name)
	}
	best := v.Root
	for _, p := range v.Places {
		if within(p, path.Clean(name)) && len(p) > len(best) {
			best = p
		}
	}
	return best
}

// pattern turns a pattern and a directory as the model writes them into the
// backend's. A pattern that begins with a place says its directory itself.
func (v View) pattern(pattern, dir string) (glob, at string, err error) {
	for _, p := range v.Places {
		if p != "/" && strings.HasPrefix(pattern, p+"/") {
			return strings.TrimPrefix(pattern, strings.TrimSuffix(v.Root, "/")), ".", nil
		}
	}
	at, err = v.resolve(dir)
	return pattern, at, err
}

func driveLetter(name string) bool {
	return len(name) >= 2 && name[1] == ':' && (name[0]|0x20) >= 'a' && (name[0]|0x20) <= 'z'
}

// label is the name of a path in a list. One that would break the line, or
// write to a terminal, is quoted.
func (v View) label(at string) string {
	name := strings.ToValidUTF8(v.name(at), string(utf8.RuneError))
	if strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}

// split moves the directories at the start of a pattern to the path where the
// search begins. What is left is anchored there. Escaped patterns stay as they
// are.
func (v View) split(dir, pattern string) (at, rest string, err error) {
	if err := backend.CheckGlob(pattern); err != nil {
		return "", "", err
	}
	inner := strings.TrimLeft(strings.TrimPrefix(pattern, "./"), "/")
	placed := slices.ContainsFunc(v.Places, func(p string) bool { return p != "/" && strings.HasPrefix(pattern, p+"/") })
	if placed {
		dir = v.Root
	}
	if strings.HasSuffix(inner, "/") { // a directory is meant: all that is in it
		inner += "**"
	}
	if strings.Contains(pattern, `\`) {
		return dir, pattern, nil
	}
	base, last := doublestar.SplitPattern(inner)
	if base == "." {
		return dir, pattern, nil
	}
	if _, err := v.resolve(dir); err != nil { // before it is joined: joining would hide what it says
		return "", "", err
	}
	if placed {
		dir = "/"
	}
	if !path.IsAbs(dir) {
		dir = path.Join(v.Home, dir)
	}
	return path.Join(dir, base), "/" + last, nil
}
