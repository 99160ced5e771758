package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/session/memory"
	"github.com/deckhand-dev/deckhand/runner/session/sessiontest"
	"github.com/deckhand-dev/deckhand/runner/step"
)

func opened(t *testing.T, dir string, o memory.Options) session.Store {
	t.Helper()
	a, err := archiveIn(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// The conformance suite of session stores.
func TestTheArchiveIsAStore(t *testing.T) {
	sessiontest.Run(t, func(t *testing.T, now func() time.Time) session.Store {
		t.Helper()
		return opened(t, t.TempDir(), memory.Options{Now: now})
	})
}

func TestTheArchiveWritesWhatIsSaid(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "u%2Fs2c1.jsonl")
	first := said(step.RoleUser, "Where is order 7?")
	for range 2 { // a new process gets all steps again
		a := opened(t, dir, memory.Options{})
		row := session.Row{ID: "u/s2c1", App: "team-a", Agent: "clerk"}
		if err := a.Append(t.Context(), row, 0, first); err != nil {
			t.Fatal(err)
		}
		second := said(step.RoleAssistant, "At the door.")
		second.Seq = 2
		if err := a.Append(t.Context(), row, 1, second); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil || strings.Count(string(data), "\n") != 2 || !strings.Contains(string(data), "order 7") {
			t.Errorf("the archive says %q, %v", data, err)
		}
	}
}
