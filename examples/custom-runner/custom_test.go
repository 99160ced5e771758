package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/backendtest"
	"github.com/deckhand-dev/deckhand/runner/config"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/session/memory"
	"github.com/deckhand-dev/deckhand/runner/session/sessiontest"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

func TestTheParrotCallsAndRepeats(t *testing.T) {
	m, err := newParrot(config.ModelSpec{})
	if err != nil {
		t.Fatal(err)
	}
	said := step.Step{Role: step.RoleUser, Parts: []step.Part{{Kind: step.PartText, Text: "Where is order 7?"}}}
	resp, err := model.Collect(m.Stream(t.Context(), &model.Request{Steps: []step.Step{said}}), nil)
	if err != nil || len(resp.Calls) != 1 || resp.Calls[0].Name != "Orders" {
		t.Fatalf("it answers %+v, %v", resp, err)
	}
	result := step.Step{Role: step.RoleTool, Parts: []step.Part{{Kind: step.PartText, Text: "Order 7: two lamps."}}}
	resp, err = model.Collect(m.Stream(t.Context(), &model.Request{Steps: []step.Step{said, result}}), nil)
	if err != nil || resp.Finish != step.FinishStop || resp.Parts[0].Text != "Order 7: two lamps." {
		t.Errorf("it answers %+v, %v", resp, err)
	}
}

func TestOrdersAreLookedUpWithoutTheirPhoneNumbers(t *testing.T) {
	tools, err := newOrders(config.ToolSpec{})
	if err != nil {
		t.Fatal(err)
	}
	layer, err := newPrivacy(task.Agent{}, task.Run{})
	if err != nil {
		t.Fatal(err)
	}
	call := layer.Tool(func(ctx context.Context, c *tool.Call) (tool.Result, error) { return tools[0].Call(ctx, *c) })
	result, err := call(t.Context(), &tool.Call{Name: "Orders", Args: json.RawMessage(`{"number":7}`)})
	if err != nil || result.Text != "Order 7: two lamps, for (hidden)." {
		t.Errorf("the model reads %q, %v", result.Text, err)
	}
}

func TestTheHandbookIsThere(t *testing.T) {
	b, err := newHandbook(config.BackendSpec{})
	if err != nil {
		t.Fatal(err)
	}
	page, err := b.Read(t.Context(), "returns.md", backend.Window{Limit: 10})
	if err != nil || !strings.Contains(strings.Join(page.Lines, "\n"), "thirty days") {
		t.Errorf("it says %q, %v", page.Lines, err)
	}
}

// A backend of your own is held to the suite that ours are held to. The suite
// brings its own files.
func TestTheShelfIsABackend(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) backend.Backend {
		t.Helper()
		b, err := shelve(fstest.MapFS{})
		if err != nil {
			t.Fatal(err)
		}
		return b
	})
}

// A store of your own is held to the suite that ours are held to.
func TestTheArchiveIsAStore(t *testing.T) {
	sessiontest.Run(t, func(t *testing.T, now func() time.Time) session.Store {
		return &archive{Store: memory.New(memory.Options{Now: now}), dir: t.TempDir()}
	})
}

func TestTheArchiveWritesWhatIsSaid(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("ARCHIVE_DIR", dir)
	a, err := newArchive(t.Context(), task.Run{})
	if err != nil {
		t.Fatal(err)
	}
	said := step.Step{Seq: 1, Role: step.RoleUser, Parts: []step.Part{{Kind: step.PartText, Text: "Where is order 7?"}}}
	if err := a.Append(t.Context(), session.Row{ID: "u", App: "team-a", Agent: "clerk"}, 0, said); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "u.jsonl"))
	if err != nil || !strings.Contains(string(data), "order 7") {
		t.Errorf("the archive says %q, %v", data, err)
	}
}
