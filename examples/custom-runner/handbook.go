package main

import (
	"context"
	"embed"
	"io/fs"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/state"
	"github.com/deckhand-dev/deckhand/runner/registry"
)

//go:embed handbook
var pages embed.FS

// newHandbook returns the files that are embedded in the image. The model finds
// them below /handbook.
func newHandbook(ctx context.Context, _ registry.BackendSpec) (backend.Backend, error) {
	files := state.New(state.Options{})
	err := fs.WalkDir(pages, "handbook", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(pages, name)
		if err != nil {
			return err
		}
		_, err = files.Write(ctx, name[len("handbook/"):], text, backend.Any)
		return err
	})
	return readOnly{files}, err
}

// readOnly is a backend that refuses Write and Edit.
type readOnly struct{ backend.Backend }

// Write implements [backend.Backend].
func (readOnly) Write(_ context.Context, path string, _ []byte, _ backend.Version) (backend.Written, error) {
	return backend.Written{}, denied("write", path)
}

// Edit implements [backend.Backend].
func (readOnly) Edit(_ context.Context, path string, _ backend.Edit) (backend.Edited, error) {
	return backend.Edited{}, denied("edit", path)
}

func denied(op, path string) error {
	return &backend.PathError{Op: op, Path: path, Err: &backend.ReadOnlyError{Place: "/handbook"}}
}
