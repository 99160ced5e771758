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
func newHandbook(ctx context.Context, _ registry.BackendSpec) (backend.Driver, error) {
	files := state.New(state.Options{})
	err := fs.WalkDir(pages, "handbook", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(pages, name)
		if err != nil {
			return err
		}
		return files.Write(ctx, name[len("handbook/"):], text, backend.None)
	})
	return readOnly{files}, err
}

// readOnly is a driver that refuses changes.
type readOnly struct{ backend.Driver }

// Write implements [backend.Driver].
func (readOnly) Write(context.Context, string, []byte, backend.Revision) error {
	return &backend.ReadOnlyError{Path: "/handbook"}
}
