package files

import (
	"context"
	_ "embed"
	"fmt"
	"regexp"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

//go:embed grep.md
var grepPage string

const defaultMatches = 100

// What Grep shows of what it finds.
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
		at, err := t.resolve(in.Path)
		if err != nil {
			return t.failed(in.Path, err)
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
			return t.failed(in.Path, err)
		}
		r := report{}
		for _, m := range found.Items {
			r.add(t.match(in.OutputMode, m))
		}
		r.cut = r.cut || found.Truncated
		return tool.Result{Text: f.note(r.text(nothing(in))), Summary: fmt.Sprintf("%d matches", len(found.Items))}, nil
	})
	return tool.WithCanonical(made, t.canonicalGrep)
}

// match is one line of Grep.
func (t *Toolset) match(mode string, m backend.Match) string {
	switch mode {
	case modeContent:
		return fmt.Sprintf("%s:%d:%s", t.label(m.Path), m.Line, m.Text)
	case modeCount:
		return fmt.Sprintf("%s:%d", t.label(m.Path), m.Count)
	}
	return t.label(m.Path)
}

// nothing says that there is no match, and what may be the cause.
func nothing(in grepIn) string {
	const none = "No matches found"
	if in.Fixed && regexp.QuoteMeta(in.Pattern) != in.Pattern {
		return none + ". The pattern was taken as plain text; leave fixed out to use it as an expression."
	}
	return none
}
