package runner

import (
	"testing"

	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestMainRefusesToBeASecondProcess(t *testing.T) {
	if code := Main(); code != task.ExitBadTask {
		t.Errorf("exit code %d, want %d", code, task.ExitBadTask)
	}
}
