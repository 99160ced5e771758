package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/session/memory"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// archive is the session store in memory, with a file for each session that has
// one step per line.
type archive struct {
	session.Store
	dir string

	mu    sync.Mutex
	saved map[string]int64 // the last step in the file, by session
}

// newArchive opens the archive in the state directory, the only directory
// besides the workspace that is writable.
func newArchive(context.Context, registry.StoreSpec) (session.Store, error) {
	return archiveIn(filepath.Join(task.StateDir, "archive"), memory.Options{})
}

func archiveIn(dir string, o memory.Options) (*archive, error) {
	if err := os.MkdirAll(dir, 0o770); err != nil {
		return nil, fmt.Errorf("creating the archive: %w", err)
	}
	return &archive{Store: memory.New(o), dir: dir, saved: map[string]int64{}}, nil
}

// Append implements [session.Store]. The runner calls it in the background, after
// the steps are in the journal.
func (a *archive) Append(ctx context.Context, row session.Row, after int64, steps ...step.Step) error {
	if err := a.Store.Append(ctx, row, after, steps...); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.save(ctx, row.ID)
}

// save appends the steps that the file of a session does not have yet. After a
// restart the runner sends all steps again, so the file is truncated first.
func (a *archive) save(ctx context.Context, id string) error {
	flag := os.O_APPEND
	if a.saved[id] == 0 {
		flag = os.O_TRUNC
	}
	f, err := os.OpenFile(a.file(id), flag|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("opening the archive: %w", err)
	}
	defer f.Close()
	for s, err := range a.Read(ctx, id, a.saved[id]+1) {
		if err != nil {
			return err
		}
		if err := json.NewEncoder(f).Encode(s); err != nil {
			return fmt.Errorf("writing to the archive: %w", err)
		}
		a.saved[id] = s.Seq
	}
	return nil
}

// Delete implements [session.Store]: it also removes the file.
func (a *archive) Delete(ctx context.Context, id string) error {
	if err := a.Store.Delete(ctx, id); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.saved, id)
	if err := os.Remove(a.file(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing from the archive: %w", err)
	}
	return nil
}

// file returns the path of a session's file. IDs may contain slashes.
func (a *archive) file(id string) string {
	return filepath.Join(a.dir, url.PathEscape(id)+".jsonl")
}
