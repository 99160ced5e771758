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

// The recorded stages of a Fetch.
const (
	stageStaged = "Staged" // files are staged and being moved into place
	stageDone   = "Done"
)

// A fetched is the record of Fetch in the state directory.
type fetched struct {
	Version int    `json:"version"`
	Stage   string `json:"stage"`
	// URL and Head are empty if there is no repository.
	URL      string       `json:"url,omitempty"`
	Revision string       `json:"revision,omitempty"` // as requested
	Head     git.Head     `json:"head,omitzero"`
	Placed   []git.Placed `json:"placed,omitempty"`
	// Missing is what was not fetched; records of earlier versions do not say.
	Missing git.Missing `json:"missing,omitzero"`
}

// A joined records that a Run has copied its files to a shared workspace.
type joined struct {
	Version int `json:"version"`
}

// A published is the record of Publish in the state directory.
type published struct {
	Version int `json:"version"`
	// Commits are those that this Run has pushed or was about to push, oldest first.
	Commits []string `json:"commits"`
}

// maxCommits bounds published.Commits.
const maxCommits = 100

// load reads a file of the state directory, if it exists.
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

// save writes a file of the state directory atomically and durably, after it has
// flushed everything that was written before.
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
