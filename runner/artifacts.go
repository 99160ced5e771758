package runner

import (
	"context"
	"log/slog"
	"os"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// artifacts finds the files that commands made in a workspace: those that were not in
// the list that was recorded at the start.
type artifacts struct {
	workspace string
	atStart   workspace.Manifest
	log       *slog.Logger
}

// recordFiles records which files a workspace has, in the state directory, so that an
// attempt after this one knows it too. It returns nil if that is not possible.
func recordFiles(ctx context.Context, dir, state string, log *slog.Logger) *artifacts {
	root, err := os.OpenRoot(dir)
	if err != nil {
		log.Warn("Files that commands make will not be listed", "error", err)
		return nil
	}
	defer root.Close()
	files, err := workspace.Begin(ctx, root, state)
	if err != nil {
		log.Warn("Files that commands make will not be listed", "error", err)
		return nil
	}
	return &artifacts{workspace: dir, atStart: files, log: log}
}

// appendTo appends the files that commands made to the files that are known already.
func (a *artifacts) appendTo(known []task.File) []task.File {
	if a == nil {
		return known
	}
	root, err := os.OpenRoot(a.workspace)
	if err != nil {
		return known
	}
	defer root.Close()
	found, _, err := workspace.Artifacts(context.Background(), root, a.atStart)
	if err != nil {
		a.log.Warn("Listing the files that commands made failed", "error", err)
	}
	for _, f := range found {
		if !slices.ContainsFunc(known, func(k task.File) bool { return k.Path == f.Path }) {
			known = append(known, f)
		}
	}
	return known
}
