package main

import (
	"context"
	"embed"
	"io/fs"
	"path"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/state"
	"github.com/deckhand-dev/deckhand/runner/config"
)

//go:embed handbook
var pages embed.FS

// newHandbook is files that come with the image; the model finds them below
// /handbook.
func newHandbook(config.BackendSpec) (backend.Backend, error) { return shelve(pages) }

// shelve is a backend with the files of another tree.
func shelve(tree fs.FS) (backend.Backend, error) {
	shelf := state.New(state.Options{})
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		_, err = shelf.Write(context.Background(), path.Base(name), text, backend.Any)
		return err
	})
	return shelf, err
}
