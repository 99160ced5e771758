package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// The runner does the task of task.json on this machine, with a scripted model and a fake
// service.
func TestTheTaskIsDoneLocally(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("12 of " + r.URL.Query().Get("item")))
	}))
	t.Cleanup(service.Close)
	model := httptest.NewServer(modeltest.NewServer(modeltest.Script{Models: map[string]modeltest.Dialogue{
		modeltest.AnyModel: {Turns: []modeltest.Turn{
			{Calls: []modeltest.Call{{Name: "Stock", Args: []byte(`{"item":"A-100"}`)}}},
			{Text: "We have {{.LastToolResult}}."},
		}},
	}}))
	t.Cleanup(model.Close)
	task, err := os.ReadFile("task.json")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	scripted := strings.NewReplacer("http://127.0.0.1:8081", service.URL, "http://127.0.0.1:11434", model.URL).Replace(string(task))
	file := filepath.Join(dir, "task.json")
	if err := os.WriteFile(file, []byte(scripted), 0o600); err != nil {
		t.Fatal(err)
	}
	log := run(t, "go", "run", "-tags=local", ".", "--task", file, "--workspace", t.TempDir(), "--state", filepath.Join(dir, "state"))
	if want := `"text":"We have 12 of A-100."`; !strings.Contains(log, want) {
		t.Errorf("the log has no %s:\n%s", want, log)
	}
}

func run(t *testing.T, command ...string) string {
	t.Helper()
	out, err := exec.CommandContext(context.WithoutCancel(t.Context()), command[0], command[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return string(out)
}
