package runner

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/config"
)

func TestAJournalByHandIsDurable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "task.json")
	if err := os.WriteFile(path, []byte(`{"task":{"prompt":"go"},"snapshot":{"models":[{"name":"m"}]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := localFlags{task: path}.read()
	if err != nil {
		t.Fatal(err)
	}
	if tk, _, err := config.Read(in.Task, in.Snapshot); err != nil || !tk.Durable {
		t.Errorf("durable %t, %v", tk.Durable, err)
	}
}
