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

	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/session/memory"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// An archive is the store in memory, and a file for each session beside it, with
// one step a line.
type archive struct {
	session.Store
	dir string

	mu    sync.Mutex
	saved map[string]int64 // the last step in the file, by session
}

// newArchive opens the archive of a runner: in the state directory, which is
// the one place beside the workspace where a pod may write.
func newArchive(context.Context, task.Run) (session.Store, error) {
	return archiveIn(filepath.Join(task.StateDir, "archive"), memory.Options{})
}

func archiveIn(dir string, o memory.Options) (*archive, error) {
	if err := os.MkdirAll(dir, 0o770); err != nil {
		return nil, fmt.Errorf("making the archive: %w", err)
	}
	return &archive{Store: memory.New(o), dir: dir, saved: map[string]int64{}}, nil
}

// Append is told of every step, behind the journal and in the background.
func (a *archive) Append(ctx context.Context, row session.Row, after int64, steps ...step.Step) error {
	if err := a.Store.Append(ctx, row, after, steps...); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.save(ctx, row.ID)
}

// save writes what the file of a session does not have yet. A process that
// starts anew is told everything anew.
func (a *archive) save(ctx context.Context, id string) error {
	how := os.O_APPEND
	if a.saved[id] == 0 {
		how = os.O_TRUNC
	}
	f, err := os.OpenFile(a.file(id), how|os.O_CREATE|os.O_WRONLY, 0o640)
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

// Delete removes the file too.
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

// file is where a session is: its id may have slashes.
func (a *archive) file(id string) string {
	return filepath.Join(a.dir, url.PathEscape(id)+".jsonl")
}
