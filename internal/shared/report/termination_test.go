package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestTerminate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "termination-log")
	last := task.Termination{Version: 1, Attempt: 2, Result: task.Result{Reason: task.ReasonFinished, Text: strings.Repeat("x", 9000)}}
	if err := Terminate(path, last); err == nil {
		t.Error("a termination message was made where no kubelet reads one")
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("old", 9000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Terminate(path, last); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got task.Termination
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if len(data) > task.MaxTermination || got.Attempt != 2 || got.Result.Text == "" {
		t.Errorf("%d bytes: %+v", len(data), got)
	}
}
