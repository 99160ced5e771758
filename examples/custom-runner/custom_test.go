package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/backendtest"
	"github.com/deckhand-dev/deckhand/runner/backend/store"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/session/memory"
	"github.com/deckhand-dev/deckhand/runner/session/sessiontest"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// said returns a step with a text.
func said(by step.Role, text string) step.Step {
	return step.Step{Seq: 1, Role: by, Parts: []step.Part{{Kind: step.PartText, Text: text}}}
}

// model.Collect reads a stream as the runner does.
func TestTheParrotCallsAndRepeats(t *testing.T) {
	m, err := newParrot(t.Context(), registry.ModelSpec{Model: task.Model{Model: "grey"}})
	if err != nil {
		t.Fatal(err)
	}
	asked := said(step.RoleUser, "Where is order 7?")
	resp, err := model.Collect(m.Stream(t.Context(), &model.Request{Steps: []step.Step{asked}}), nil)
	if err != nil || resp.Finish != step.FinishCalls || len(resp.Calls) != 1 || resp.Calls[0].Args != `{"number":7}` {
		t.Fatalf("it answers %+v, %v", resp, err)
	}
	result := said(step.RoleTool, "Order 7: two lamps.")
	resp, err = model.Collect(m.Stream(t.Context(), &model.Request{Steps: []step.Step{asked, result}}), nil)
	if err != nil || resp.Finish != step.FinishStop || resp.Parts[0].Text != "Order 7: two lamps." {
		t.Errorf("it answers %+v, %v", resp, err)
	}
	if _, err := newParrot(t.Context(), registry.ModelSpec{Model: task.Model{Model: "pink"}}); err == nil {
		t.Error("there is a pink parrot")
	}
}

// signer returns the spec of a Model behind the gateway.
func signer(endpoint string) registry.ModelSpec {
	return registry.ModelSpec{
		Model: task.Model{Name: "m", Provider: "Custom", Driver: "gateway", Model: modeltest.ModelName, Endpoint: endpoint},
		Key:   func() (string, error) { return modeltest.Key, nil },
	}
}

// The conformance suite of OpenAI's API.
func TestTheGatewayIsAModel(t *testing.T) {
	modeltest.Run(t, func(t *testing.T, baseURL string) model.Model {
		t.Helper()
		m, err := newGateway(t.Context(), signer(baseURL))
		if err != nil {
			t.Fatal(err)
		}
		return m
	})
}

func TestTheGatewaySigns(t *testing.T) {
	var body []byte
	var signature string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		signature = r.Header.Get("X-Signature")
	}))
	t.Cleanup(server.Close)
	m, err := newGateway(t.Context(), signer(server.URL+"/v1"))
	if err != nil {
		t.Fatal(err)
	}
	req := &model.Request{Steps: []step.Step{said(step.RoleUser, "Hi")}}
	_, _ = model.Collect(m.Stream(t.Context(), req), nil) // it answers nothing
	if want := sign(modeltest.Key, body); signature != want || len(body) == 0 {
		t.Errorf("a body of %d bytes is signed %q, want %q", len(body), signature, want)
	}
	if _, err := newGateway(t.Context(), registry.ModelSpec{}); err == nil {
		t.Error("it signs without a key")
	}
}

func TestOrdersAreLookedUpWithoutTheirPhoneNumbers(t *testing.T) {
	tools, err := newOrders(t.Context(), registry.ToolSpec{})
	if err != nil {
		t.Fatal(err)
	}
	layer, err := newPrivacy(t.Context(), registry.LayerSpec{})
	if err != nil {
		t.Fatal(err)
	}
	stack, err := middleware.Build(layer)
	if err != nil {
		t.Fatal(err)
	}
	call := stack.Tool(func(ctx context.Context, c *tool.Call) (tool.Result, error) { return tools[0].Call(ctx, *c) })
	for args, want := range map[string]string{
		`{"number":7}`:   "Order 7: two lamps, for (hidden).",
		`{"number":0}`:   "Error: there is no such order\n- Numbers begin with 1.",
		`{"number":"7"}`: "Error: Invalid arguments for Orders",
	} {
		result, err := call(t.Context(), &tool.Call{Name: "Orders", Args: json.RawMessage(args)})
		if err != nil || !strings.HasPrefix(result.Render(), want) {
			t.Errorf("for %s the model reads %q, %v", args, result.Render(), err)
		}
	}
	failing := stack.Tool(func(context.Context, *tool.Call) (tool.Result, error) { return tool.Fail("ask 0170 555 1234"), nil })
	if result, err := failing(t.Context(), &tool.Call{}); err != nil || result.Render() != "Error: ask (hidden)" {
		t.Errorf("of an error the model reads %q, %v", result.Render(), err)
	}
}

func TestTheHandbookIsReadAndNotWritten(t *testing.T) {
	d, err := newHandbook(t.Context(), registry.BackendSpec{})
	if err != nil {
		t.Fatal(err)
	}
	b := backend.New(d, nil)
	page, err := b.Read(t.Context(), "returns.md", backend.Window{Limit: 10})
	if err != nil || !strings.Contains(strings.Join(page.Lines, "\n"), "thirty days") {
		t.Errorf("it says %q, %v", page.Lines, err)
	}
	_, writing := b.Write(t.Context(), "returns.md", nil, backend.Any)
	_, editing := b.Edit(t.Context(), "returns.md", backend.Edit{Old: "thirty", New: "sixty"})
	if !errors.Is(writing, backend.ErrDenied) || !errors.Is(editing, backend.ErrDenied) {
		t.Errorf("writing: %v, editing: %v", writing, editing)
	}
}

// A service that keeps memories, as httpKV expects it.
func service(t *testing.T) string {
	t.Helper()
	kv := store.NewMemory(store.MemoryOptions{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.URL.Path, "/team-a/clerk/")
		when := store.Revision(r.Header.Get("If-Match"))
		var err error
		switch {
		case r.Method == http.MethodPut:
			data, _ := io.ReadAll(r.Body)
			when, err = kv.Put(r.Context(), key, data, when)
		case r.Method == http.MethodDelete:
			err = kv.Delete(r.Context(), key, when)
		case r.URL.Query().Has("prefix"):
			all := []store.Entry{}
			for e := range kv.List(r.Context(), r.URL.Query().Get("prefix")) {
				all = append(all, e)
			}
			_ = json.NewEncoder(w).Encode(all)
			return
		default:
			var v store.Value
			v, err = kv.Get(r.Context(), key)
			when = v.Revision
			w.Header().Set("ETag", string(when))
			defer func() { _, _ = w.Write(v.Data) }()
		}
		w.Header().Set("ETag", string(when))
		for status, known := range statuses {
			if errors.Is(err, known) {
				w.WriteHeader(status)
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

var clerk = registry.BackendSpec{Run: task.Run{Namespace: "team-a"}, Agent: task.Agent{Name: "clerk"}}

// The conformance suite of drivers.
func TestMemoriesAreADriver(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) backend.Driver {
		t.Setenv("MEMORIES_URL", service(t))
		d, err := newMemories(t.Context(), clerk)
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}

func TestMemoriesOutliveTheProcess(t *testing.T) {
	t.Setenv("MEMORIES_URL", service(t))
	for i, when := range []backend.Version{backend.Absent, backend.Absent} {
		d, err := newMemories(t.Context(), clerk)
		if err != nil {
			t.Fatal(err)
		}
		_, err = backend.New(d, nil).Write(t.Context(), "pilot.txt", []byte{byte('a' + i)}, when)
		if i == 1 && !errors.Is(err, backend.ErrExists) || i == 0 && err != nil {
			t.Errorf("process %d: %v", i+1, err)
		}
	}
}

func TestMemoriesThatAreDown(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	t.Cleanup(server.Close)
	t.Setenv("MEMORIES_URL", server.URL)
	d, err := newMemories(t.Context(), clerk)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.List(t.Context(), "."); err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("List: %v", err)
	}
}

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

func TestSlowCallsAreLogged(t *testing.T) {
	var logged bytes.Buffer
	was := warnings
	warnings = slog.New(slog.NewJSONHandler(&logged, nil))
	t.Cleanup(func() { warnings = was })
	for _, p := range []events.Payload{
		events.CallFinished{Name: "Quick", DurationMs: slow - 1}, events.CallFinished{Name: "Slow", DurationMs: slow}, events.Nudged{},
	} {
		logSlowCalls(events.Event{Payload: p})
	}
	if got := logged.String(); !strings.Contains(got, `"tool":"Slow"`) || strings.Contains(got, "Quick") {
		t.Errorf("it logs %q", got)
	}
}
