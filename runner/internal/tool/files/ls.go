package files

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

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
		at, err := t.resolve(in.Path)
		if err != nil {
			return t.failed(in.Path, err)
		}
		infos, err := t.backend.List(ctx, at)
		_, outside := errors.AsType[*backend.OutsideError](err)
		switch {
		case outside:
			return t.failed(in.Path, err)
		case errors.Is(err, backend.ErrNotFound):
			return tool.Fail(fmt.Sprintf("Path '%s': path_not_found", in.Path)), nil
		case errors.Is(err, backend.ErrNotDir):
			return tool.Fail(fmt.Sprintf("Path '%s': not_a_directory", in.Path), "Read it with Read."), nil
		case err != nil:
			return t.failed(in.Path, err)
		}
		var r report
		f := t.filterFor(ctx, call)
		shown := f.keep(infos)
		for _, info := range shown {
			r.add(t.entry(info))
		}
		return tool.Result{Text: f.note(r.text("The directory is empty")), Summary: fmt.Sprintf("%d entries", len(shown))}, nil
	})
	return tool.WithCanonical(made, t.canonicalPath)
}

// entry is one line of Ls.
func (t *Toolset) entry(info backend.Info) string {
	if info.Dir {
		return t.label(info.Path) + "/"
	}
	return fmt.Sprintf("%s  %s", t.label(info.Path), size(info.Size))
}
