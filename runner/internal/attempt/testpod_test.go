package attempt

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/report"
	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const secret = "sk-very-secret-key"

// A testPod is a place in directories of a test, with an API server and a model.
type testPod struct {
	Environment
	task     task.Task
	snapshot task.Snapshot
	api      *fakeAPI
	model    *modeltest.Server
}

// A fakeAPI is an API server that keeps the progress that was reported. Its answer
// decides what it says; nil accepts everything. A patch of the resource version, by which
// a runner asks whether its pod is recorded, is a conflict.
type fakeAPI struct {
	mu       sync.Mutex
	reported []task.Progress
	sent     []byte // the last request
	answer   respond
}

func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var ops []struct {
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	var p task.Progress
	body, err := io.ReadAll(r.Body)
	if err := errors.Join(err, json.Unmarshal(body, &ops)); err != nil {
		http.Error(w, string(body), http.StatusBadRequest)
		return
	}
	last := ops[len(ops)-1]
	isCheck := last.Path == "/metadata/resourceVersion"
	if !isCheck && json.Unmarshal(last.Value, &p) != nil {
		http.Error(w, string(body), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !isCheck {
		a.sent = body
	}
	if a.answer != nil {
		if status, said := a.answer(len(a.reported), p); status != http.StatusOK {
			http.Error(w, said, status)
			return
		}
	}
	if isCheck {
		http.Error(w, "the object has been modified", http.StatusConflict)
		return
	}
	a.reported = append(a.reported, p)
	_, _ = io.WriteString(w, "{}")
}

// committed says whether the last that was reported is a result.
func (a *fakeAPI) committed() bool {
	return len(a.reported) > 0 && a.reported[len(a.reported)-1].Result != nil
}

func newTestPod(t *testing.T, turns ...modeltest.Turn) *testPod {
	t.Helper()
	dir := t.TempDir()
	p := &testPod{api: &fakeAPI{}, model: modeltest.NewServer(modeltest.Script{
		Key: secret, Models: map[string]modeltest.Dialogue{modeltest.ModelName: {Turns: turns}},
	})}
	apiServer, modelServer := httptest.NewServer(p.api), httptest.NewServer(p.model)
	t.Cleanup(apiServer.Close)
	t.Cleanup(modelServer.Close)
	p.task = task.Task{
		Version: 1, Attempt: 1, Prompt: "go", Limits: task.Limits{Steps: 30},
		Run: task.Run{Namespace: "team-a", Name: "fix-1", UID: "uid-1"},
	}
	p.snapshot = task.Snapshot{
		Version: 1,
		Agent:   task.Agent{Name: "fixer", ParallelTools: 4, Events: "Full", Tools: []task.Tool{{Builtin: "Files"}}},
		Models: []task.Model{{
			Name: "m", Provider: "OpenAICompatible", Model: modeltest.ModelName, Endpoint: modelServer.URL + "/v1",
			SecretKey: task.SecretKey{Secret: "anthropic", Key: "api-key"},
		}},
	}
	p.Environment = Environment{
		Task: p.input,
		Key: func(s task.SecretKey) func() (string, error) {
			return config.KeyFile(filepath.Join(dir, "secrets", s.Secret, s.Key))
		},
		State:          filepath.Join(dir, "state"),
		Workspace:      filepath.Join(dir, "workspace"),
		terminationLog: filepath.Join(dir, "termination-log"),
		Stdout:         io.Discard, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		reporter: func(pl Environment, tk task.Task, ended func(error)) (reporter, error) {
			return report.New(report.Options{
				Target: report.Target{
					URL: apiServer.URL, Run: tk.Run, PodUID: "pod-1", Client: apiServer.Client(),
					Token: func() (string, error) { return "token", nil },
				},
				Now: pl.Now, Ended: ended, Log: pl.Log, Jitter: func(d time.Duration) time.Duration { return d },
			}), nil
		},
	}
	writeFile(t, filepath.Join(dir, "secrets", "anthropic", "api-key"), secret+"\n")
	writeFile(t, p.terminationLog, "")
	if err := os.MkdirAll(p.Workspace, 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func (p *testPod) input() (Input, error) {
	snapshot, err := json.Marshal(p.snapshot)
	if err != nil {
		return Input{}, err
	}
	if p.task.SnapshotHash == "" {
		p.task.SnapshotHash = task.Hash(snapshot)
	}
	written, err := json.Marshal(p.task)
	return Input{Task: written, Snapshot: snapshot}, err
}

func (p *testPod) run(options ...option) int { return Main(p.Environment, registryOf(options...)) }

// An option adds something to a runner, as an Option of package runner does.
type option func(*config.Registry) error

func withModel(driver string, f registry.ModelFactory) option {
	return func(r *config.Registry) error { return r.AddModel(driver, f) }
}

func withTool(name string, f registry.ToolFactory) option {
	return func(r *config.Registry) error { return r.AddTool(name, f) }
}

func withLayer(f registry.LayerFactory) option {
	return func(r *config.Registry) error { return r.AddLayer(f) }
}

func withStore(f registry.StoreFactory) option {
	return func(r *config.Registry) error { return r.AddStore(f) }
}

func registryOf(options ...option) Registry {
	return func() (*config.Registry, error) {
		r := config.NewRegistry()
		for _, add := range options {
			if err := add(r); err != nil {
				return nil, err
			}
		}
		return r, nil
	}
}

// termination is the termination message.
func (p *testPod) termination(t *testing.T) task.Termination {
	t.Helper()
	data, err := os.ReadFile(p.terminationLog)
	if err != nil {
		t.Fatal(err)
	}
	var last task.Termination
	if err := json.Unmarshal(data, &last); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return last
}

func writeTurn(path, content string) modeltest.Turn {
	args, _ := json.Marshal(map[string]string{"path": path, "content": content})
	return modeltest.Turn{Calls: []modeltest.Call{{Name: "Write", Args: args}}}
}

// allOutput is what an attempt leaves behind: its journal, what it told and
// its last word.
func (p *testPod) allOutput(t *testing.T) string {
	t.Helper()
	told, err := json.Marshal(p.api.reported)
	if err != nil {
		t.Fatal(err)
	}
	last, _ := os.ReadFile(p.terminationLog)
	seen := string(told) + string(last)
	err = filepath.WalkDir(p.State, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		seen += string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}
