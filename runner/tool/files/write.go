package files

import (
	"context"
	_ "embed"
	"fmt"

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
	return tool.Typed(changing(NameWrite, writePage, tool.Idempotent), func(ctx context.Context, _ tool.Call, in writeIn) (tool.Result, error) {
		at, err := t.resolve(in.Path)
		if err != nil {
			return t.failed(in.Path, err)
		}
		written, err := t.overwrite(ctx, at, []byte(in.Content))
		if err != nil {
			return t.failed(in.Path, err)
		}
		done := "Wrote"
		if written.Created {
			done = "Created"
		}
		text := fmt.Sprintf("%s %s (%s)", done, t.name(at), size(int64(written.Bytes)))
		return tool.Result{Text: text, Summary: text}, nil
	})
}

// overwrite writes a file that is new or as it was last seen.
func (t *Toolset) overwrite(ctx context.Context, at string, data []byte) (backend.Written, error) {
	s := t.look(at)
	defer s.Unlock()
	when := backend.Absent
	if s.read {
		when = s.version
	}
	written, err := t.backend.Write(ctx, at, data, when)
	if err == nil {
		s.saw(written.Version)
		t.changed(at)
	}
	return written, err
}
