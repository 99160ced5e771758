package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
)

// The files of a session come from the Run that is continued, or from one before; what is there stays, and it can be
// done again after a crash.
func TestTakeFiles(t *testing.T) {
	state := t.TempDir()
	second := journal.SourceDir(state)
	first := journal.SourceDir(second)
	for dir, names := range map[string][]string{first: {"results", "memories", "commands"}, second: {"memories", "events"}, state: {"tmp"}} {
		for _, name := range names {
			if err := os.MkdirAll(filepath.Join(dir, name, filepath.Base(filepath.Dir(dir))), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		if err := config.TakeFiles(state); err != nil {
			t.Fatal(err)
		}
	}
	for dir, isThere := range map[string]bool{
		"results/source": true, "commands/source": true, "tmp": true,
		"memories/" + filepath.Base(state): true, // of the second Run, and not of the first
		"memories/source":                  false, "events": false,
	} {
		if _, err := os.Stat(filepath.Join(state, dir)); (err == nil) != isThere {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if err := config.TakeFiles(t.TempDir()); err != nil {
		t.Errorf("without a Run before: %v", err)
	}
}
