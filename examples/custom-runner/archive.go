package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/session/memory"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// An archive keeps sessions in memory, as the store that the runner comes with
// does, and writes what is said to a file for each, one step a line.
type archive struct {
	session.Store
	dir string
}

// newArchive opens the archive of a runner.
func newArchive(context.Context, task.Run) (session.Store, error) {
	dir := os.Getenv("ARCHIVE_DIR")
	if dir == "" {
		dir = filepath.Join(task.StateDir, "archive")
	}
	if err := os.MkdirAll(dir, 0o770); err != nil {
		return nil, fmt.Errorf("making the archive: %w", err)
	}
	return &archive{Store: memory.New(memory.Options{}), dir: dir}, nil
}

// Append is told of every step, behind the journal and in the background.
func (a *archive) Append(ctx context.Context, row session.Row, after int64, steps ...step.Step) error {
	if err := a.Store.Append(ctx, row, after, steps...); err != nil {
		return err
	}
	file := strings.ReplaceAll(row.ID, "/", "-") + ".jsonl"
	f, err := os.OpenFile(filepath.Join(a.dir, file), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("opening the archive: %w", err)
	}
	defer f.Close()
	for _, s := range steps {
		if err := json.NewEncoder(f).Encode(s); err != nil {
			return fmt.Errorf("writing to the archive: %w", err)
		}
	}
	return nil
}
