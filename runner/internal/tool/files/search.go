package files

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

//go:embed ls.md
var lsPage string

type lsIn struct {
	Path string `json:"path,omitempty" jsonschema:"the directory; default: the workspace"`
}

func (t *Toolset) ls() tool.Tool {
	made := tool.Typed(reading(NameLs, lsPage), func(ctx context.Context, call tool.Call, in lsIn) (tool.Result, error) {
		at, err := t.view.resolve(in.Path)
		if err != nil {
			return t.view.failed(in.Path, err)
		}
		infos, err := t.backend.List(ctx, at)
		_, outside := errors.AsType[*backend.OutsideError](err)
		switch {
		case outside:
			return t.view.failed(in.Path, err)
		case errors.Is(err, backend.ErrNotFound):
			return tool.Fail(fmt.Sprintf("Path '%s': path_not_found", in.Path)), nil
		case errors.Is(err, backend.ErrNotDir):
			return tool.Fail(fmt.Sprintf("Path '%s': not_a_directory", in.Path), "Read it with Read."), nil
		case err != nil:
			return t.view.failed(in.Path, err)
		}
		var r report
		f := t.filterFor(ctx, call)
		shown := f.readableEntries(infos)
		for _, info := range shown {
			r.add(t.entry(info))
		}
		return tool.Result{Text: f.note(r.text("The directory is empty")), Summary: fmt.Sprintf("%d entries", len(shown))}, nil
	})
	made.Canonicalize = t.canonicalPath
	return made
}

// entry returns one line of Ls.
func (t *Toolset) entry(info backend.Info) string {
	if info.Dir {
		return t.view.label(info.Path) + "/"
	}
	return fmt.Sprintf("%s  %s", t.view.label(info.Path), size(info.Size))
}

//go:embed glob.md
var globPage string

type globIn struct {
	Pattern string `json:"pattern" jsonschema:"the pattern, such as *.go or src/**/*.{ts,tsx}"`
	Path    string `json:"path,omitempty" jsonschema:"the directory to look in; default: the workspace"`
}

func (t *Toolset) glob() tool.Tool {
	made := tool.Typed(reading(NameGlob, globPage), func(ctx context.Context, call tool.Call, in globIn) (tool.Result, error) {
		pattern, at, err := t.view.pattern(in.Pattern, in.Path)
		if err != nil {
			return t.view.failed(in.Path, err)
		}
		f := t.filterFor(ctx, call)
		found, err := t.backend.Glob(ctx, pattern, at, f.skipInfo())
		if err != nil {
			return t.view.failed(in.Path, err)
		}
		var r report
		for _, info := range found.Items {
			r.add(t.view.label(info.Path))
		}
		r.cut = r.cut || found.Truncated
		return tool.Result{Text: f.note(r.text("No files found")), Summary: fmt.Sprintf("%d files", len(found.Items))}, nil
	})
	made.Canonicalize = t.canonicalGlob
	return made
}

//go:embed grep.md
var grepPage string

const defaultMatches = 100

// The output modes of Grep.
const (
	modeFiles   = "files_with_matches"
	modeContent = "content"
	modeCount   = "count"
)

type grepIn struct {
	Pattern    string `json:"pattern" jsonschema:"the expression to look for (RE2), or with fixed the text"`
	Path       string `json:"path,omitempty" jsonschema:"the directory or file to look in; default: the workspace"`
	Glob       string `json:"glob,omitempty" jsonschema:"look only in files that match this pattern, such as *.go"`
	OutputMode string `json:"output_mode,omitempty" enum:"files_with_matches,content,count" jsonschema:"what to show: the files (default), the matching lines, or how many lines match in each file"`
	Fixed      bool   `json:"fixed,omitempty" jsonschema:"take the pattern as plain text; default false"`
	IgnoreCase bool   `json:"ignore_case,omitempty" jsonschema:"ignore upper and lower case; default false"`
	Limit      int    `json:"limit,omitempty" jsonschema:"most lines or files to show; default 100, at most 1000"`
}

func (t *Toolset) grep() tool.Tool {
	made := tool.Typed(reading(NameGrep, grepPage), func(ctx context.Context, call tool.Call, in grepIn) (tool.Result, error) {
		at, err := t.view.resolve(in.Path)
		if err != nil {
			return t.view.failed(in.Path, err)
		}
		f := t.filterFor(ctx, call)
		q := backend.Query{
			Pattern: in.Pattern, Fixed: in.Fixed, IgnoreCase: in.IgnoreCase,
			Dir: at, Glob: in.Glob, ByFile: in.OutputMode != modeContent, Limit: in.Limit, Skip: f.skip(),
		}
		if q.Limit < 1 {
			q.Limit = defaultMatches
		}
		found, err := t.backend.Grep(ctx, q)
		if err != nil {
			return t.view.failed(in.Path, err)
		}
		r := report{}
		for _, m := range found.Items {
			r.add(t.match(in.OutputMode, m))
		}
		r.cut = r.cut || found.Truncated
		return tool.Result{Text: f.note(r.text(nothing(in))), Summary: fmt.Sprintf("%d matches", len(found.Items))}, nil
	})
	made.Canonicalize = t.canonicalGrep
	return made
}

// match returns one line of Grep.
func (t *Toolset) match(mode string, m backend.Match) string {
	switch mode {
	case modeContent:
		return fmt.Sprintf("%s:%d:%s", t.view.label(m.Path), m.Line, m.Text)
	case modeCount:
		return fmt.Sprintf("%s:%d", t.view.label(m.Path), m.Count)
	}
	return t.view.label(m.Path)
}

// nothing reports that nothing matched, with possible causes.
func nothing(in grepIn) string {
	const none = "No matches found"
	if in.Fixed && regexp.QuoteMeta(in.Pattern) != in.Pattern {
		return none + ". The pattern was taken as plain text; leave fixed out to use it as an expression."
	}
	return none
}

// A report is a list of results, at most maxResult characters.
type report struct {
	lines []string
	chars int
	cut   bool
}

// add adds a line if it fits.
func (r *report) add(line string) {
	n := utf8.RuneCountInString(line) + 1
	if r.cut = r.cut || r.chars+n > maxResult; r.cut {
		return
	}
	r.lines = append(r.lines, line)
	r.chars += n
}

// text returns the report, or none if it is empty.
func (r *report) text(none string) string {
	lines := r.lines
	if len(lines) == 0 && !r.cut {
		return none
	}
	if r.cut {
		lines = append(lines, truncated)
	}
	return strings.Join(lines, "\n")
}

// maxAnswers bounds how many decisions of the policy one call keeps, by file.
const maxAnswers = 10_000

// A filter removes files from a list that the policies of the session do not let it Read without asking a user. It is
// safe for concurrent use.
type filter struct {
	t       *Toolset
	ctx     context.Context
	session tool.Session // nil: everything may be read

	mu      sync.Mutex
	answers map[string]bool // by name of the file
	left    map[string]bool // out of the list, by path of the backend
}

func (t *Toolset) filterFor(ctx context.Context, call tool.Call) *filter {
	f := &filter{t: t, ctx: ctx, answers: map[string]bool{}, left: map[string]bool{}}
	if call.Session != nil && call.Session.HasPolicy() {
		f.session = call.Session
	}
	return f
}

// allows reports whether a file may be read, by its path in the backend.
func (f *filter) allows(at string) bool {
	name := f.t.view.name(at)
	f.mu.Lock()
	answer, known := f.answers[name]
	f.mu.Unlock()
	if known {
		return answer
	}
	args, err := json.Marshal(map[string]string{"path": name})
	answer = err == nil && f.session.Allows(f.ctx, NameRead, args)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.answers) < maxAnswers {
		f.answers[name] = answer
	}
	return answer
}

// readableEntries returns the entries of Ls that may be read.
func (f *filter) readableEntries(infos []backend.Info) []backend.Info {
	if f.session == nil {
		return infos
	}
	return slices.DeleteFunc(infos, f.skipInfo())
}

// skipInfo returns a function that reports which entries of Ls and Glob to skip. A link may be shown only if its target
// may be read as well.
func (f *filter) skipInfo() func(backend.Info) bool {
	if f.session == nil {
		return nil
	}
	return func(info backend.Info) bool {
		if f.allows(info.Path) && (!info.Link || f.allowsTarget(info.Path)) {
			return false
		}
		f.leaveOut(info.Path)
		return true
	}
}

// allowsTarget reports whether the target of a link may be read. A link without a target reveals nothing.
func (f *filter) allowsTarget(link string) bool {
	target, err := f.t.backend.Resolve(f.ctx, link)
	return err != nil || f.allows(target)
}

// skip returns a function that Grep calls for each file before it searches it. If it were called only after a match,
// the note would reveal whether a forbidden file matches the pattern.
func (f *filter) skip() func(at string) bool {
	if f.session == nil {
		return nil
	}
	return func(at string) bool {
		if f.allows(at) {
			return false
		}
		f.leaveOut(at)
		return true
	}
}

// leaveOut counts a file once, even if several patterns find it. It stops counting at maxAnswers.
func (f *filter) leaveOut(at string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.left) <= maxAnswers {
		f.left[at] = true
	}
}

// note adds to a result how many files were left out.
func (f *filter) note(result string) string {
	switch n := len(f.left); {
	case n == 0:
		return result
	case n == 1:
		return result + "\n[1 file left out: the policy does not let this agent read it]"
	case n > maxAnswers:
		return fmt.Sprintf("%s\n[more than %d files left out: the policy does not let this agent read them]", result, maxAnswers)
	default:
		return fmt.Sprintf("%s\n[%d files left out: the policy does not let this agent read them]", result, n)
	}
}
