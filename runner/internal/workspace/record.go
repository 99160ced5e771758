package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace/git"
)

// The stages of a Fetch. Before the first nothing is recorded.
const (
	stageStaged = "Staged" // all is put together, and being moved into place
	stageDone   = "Done"
)

// A fetched is what Fetch has done, as the state directory keeps it.
type fetched struct {
	Version int    `json:"version"`
	Stage   string `json:"stage"`
	// URL and Head are empty where there was no repository.
	URL      string       `json:"url,omitempty"`
	Revision string       `json:"revision,omitempty"` // as it was asked for
	Head     git.Head     `json:"head,omitzero"`
	Placed   []git.Placed `json:"placed,omitempty"`
}

// A joined says that a Run has put what it brings into a workspace that it shares.
type joined struct {
	Version int `json:"version"`
}

// A published is what was sent, or was about to be.
type published struct {
	Version int `json:"version"`
	// Commits are those that the branch may stand at because of us, oldest first.
	Commits []string `json:"commits"`
}

// maxCommits is how many of them are kept.
const maxCommits = 100

// load reads a file of the state directory, and nothing where it is not there.
func load(state, name string, into any) error {
	data, err := os.ReadFile(in(state, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return fmt.Errorf("reading %s of the state directory: %w", name, err)
	}
	return nil
}

// save writes a file of the state directory so that it is there whole or not at
// all, also after the power was lost; with all that was written there before.
func save(state, name string, value any) error {
	data, err := json.Marshal(value)
	if err == nil {
		err = errors.Join(flush(in(state, "")), replace(in(state, name), data))
	}
	if err != nil {
		return fmt.Errorf("writing %s of the state directory: %w", name, err)
	}
	return nil
}

func replace(name string, data []byte) error {
	f, err := os.Create(name + ".tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(name+".tmp", name); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
