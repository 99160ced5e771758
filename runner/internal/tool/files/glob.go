package files

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/deckhand-dev/deckhand/runner/tool"
)

//go:embed glob.md
var globPage string

type globIn struct {
	Pattern string `json:"pattern" jsonschema:"the pattern, such as *.go or src/**/*.{ts,tsx}"`
	Path    string `json:"path,omitempty" jsonschema:"the directory to look in; default: the workspace"`
}

func (t *Toolset) glob() tool.Tool {
	made := tool.Typed(reading(NameGlob, globPage), func(ctx context.Context, call tool.Call, in globIn) (tool.Result, error) {
		pattern, at, err := t.pattern(in.Pattern, in.Path)
		if err != nil {
			return t.failed(in.Path, err)
		}
		f := t.filterFor(ctx, call)
		found, err := t.backend.Glob(ctx, pattern, at, f.skipInfo())
		if err != nil {
			return t.failed(in.Path, err)
		}
		var r report
		for _, info := range found.Items {
			r.add(t.label(info.Path))
		}
		r.cut = r.cut || found.Truncated
		return tool.Result{Text: f.note(r.text("No files found")), Summary: fmt.Sprintf("%d files", len(found.Items))}, nil
	})
	return tool.WithCanonical(made, t.canonicalGlob)
}
