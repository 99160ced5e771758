package files

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

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
	// errRemoved refuses an edit of a file that the session knew and that a
	// command has removed.
	errRemoved = errors.New("was removed since it was last read or written")
	// errNumbered refuses an edit whose new text has the line numbers of Read.
	errNumbered = errors.New("begins with the line numbers of Read")
)

func (t *Toolset) edit() tool.Tool {
	made := tool.Typed(changing(NameEdit, editPage, tool.Once), func(ctx context.Context, _ tool.Call, in editIn) (tool.Result, error) {
		at, err := t.resolve(in.Path)
		if err != nil {
			return t.failed(in.Path, err)
		}
		edited, err := t.replace(ctx, at, backend.Edit{Old: in.OldString, New: in.NewString, All: in.ReplaceAll})
		if err != nil {
			return t.failed(in.Path, &editError{old: in.OldString, err: err})
		}
		text := fmt.Sprintf("Replaced 1 occurrence in %s, at line %d", t.name(at), edited.Line)
		if edited.Replaced > 1 {
			text = fmt.Sprintf("Replaced %d occurrences in %s, the first at line %d", edited.Replaced, t.name(at), edited.Line)
		}
		return tool.Result{Text: text, Summary: text}, nil
	})
	return tool.WithCanonical(made, t.canonicalPath)
}

// replace edits a file that is as it was last seen.
func (t *Toolset) replace(ctx context.Context, at string, e backend.Edit) (backend.Edited, error) {
	s := t.look(at)
	defer s.Unlock()
	if !s.read {
		// A path that is wrong is told before a reading that is missing.
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
		s.saw(edited.Version)
		t.changed(at)
	case errors.Is(err, backend.ErrNotFound):
		s.forget()
		err = errRemoved
	}
	return edited, err
}
