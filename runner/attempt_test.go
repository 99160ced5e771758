package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/internal/report"
	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const secret = "sk-very-secret-key"

// A testPod is a place in directories of a test, with an API server and a model.
type testPod struct {
	environment
	task     task.Task
	snapshot task.Snapshot
	api      *fakeAPI
	model    *modeltest.Server
}

// A fakeAPI is an API server that keeps the progress that it was told. Its answer
// decides what it says; nil accepts everything.
type fakeAPI struct {
	mu     sync.Mutex
	told   []task.Progress
	sent   []byte // the last request
	answer respond
}

func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var ops []struct {
		Value json.RawMessage `json:"value"`
	}
	var p task.Progress
	body, err := io.ReadAll(r.Body)
	if err := errors.Join(err, json.Unmarshal(body, &ops)); err != nil || json.Unmarshal(ops[1].Value, &p) != nil {
		http.Error(w, string(body), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = body
	if a.answer != nil {
		if status, said := a.answer(len(a.told), p); status != http.StatusOK {
			http.Error(w, said, status)
			return
		}
	}
	a.told = append(a.told, p)
	_, _ = io.WriteString(w, "{}")
}

// committed says whether the last that was told is a result.
func (a *fakeAPI) committed() bool {
	return len(a.told) > 0 && a.told[len(a.told)-1].Result != nil
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
	p.environment = environment{
		task: p.input,
		key: func(s task.SecretKey) func() (string, error) {
			return config.KeyFile(filepath.Join(dir, "secrets", s.Secret, s.Key))
		},
		state:     filepath.Join(dir, "state"),
		workspace: filepath.Join(dir, "workspace"),
		last:      filepath.Join(dir, "termination-log"),
		stdout:    io.Discard, log: slog.New(slog.DiscardHandler), now: time.Now,
		reporter: func(pl environment, tk task.Task, ended func(error)) (reporter, error) {
			return report.New(report.Options{
				Target: report.Target{
					URL: apiServer.URL, Run: tk.Run, PodUID: "pod-1", Client: apiServer.Client(),
					Token: func() (string, error) { return "token", nil },
				},
				Now: pl.now, Ended: ended, Log: pl.log, Jitter: func(d time.Duration) time.Duration { return d },
			}), nil
		},
	}
	writeFile(t, filepath.Join(dir, "secrets", "anthropic", "api-key"), secret+"\n")
	writeFile(t, p.last, "")
	if err := os.MkdirAll(p.workspace, 0o700); err != nil {
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

func (p *testPod) input() (input, error) {
	snapshot, err := json.Marshal(p.snapshot)
	if err != nil {
		return input{}, err
	}
	if p.task.SnapshotHash == "" {
		p.task.SnapshotHash = task.Hash(snapshot)
	}
	written, err := json.Marshal(p.task)
	return input{task: written, snapshot: snapshot}, err
}

func (p *testPod) run(options ...Option) int { return runAttempt(p.environment, options) }

// termination is the termination message.
func (p *testPod) termination(t *testing.T) task.Termination {
	t.Helper()
	data, err := os.ReadFile(p.last)
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

func TestAnAttempt(t *testing.T) {
	p := newTestPod(t, writeTurn("a.txt", "hello"), modeltest.Turn{Text: "I wrote a.txt"})
	if code := p.run(); code != task.ExitCommitted {
		t.Fatalf("exit code %d: %+v", code, p.termination(t))
	}
	told := p.api.told
	if len(told) != 3 || told[0].Effects != "" || told[1].Effects != task.EffectsBegun {
		t.Fatalf("told %+v; want the start, that effects begin, and the end", told)
	}
	end := told[2].Result
	if end == nil || !end.Committed || end.Reason != task.ReasonFinished || end.Text != "I wrote a.txt" {
		t.Fatalf("the end is %+v", end)
	}
	if len(end.Files) != 1 || end.Files[0] != (task.File{Path: "/workspace/a.txt", Size: 5}) {
		t.Errorf("files %+v", end.Files)
	}
	if last := p.termination(t); last.Result.Text != end.Text || !last.Result.Committed || last.Effects != task.EffectsBegun {
		t.Errorf("the termination message is %+v", last)
	}
	if told[2].Counts != (task.Counts{Steps: 2, ModelCalls: 2, ToolCalls: 1}) {
		t.Errorf("counts %+v", told[2].Counts)
	}
}

func TestATrivialRunIsTwoWrites(t *testing.T) {
	p := newTestPod(t, modeltest.Turn{Text: "hi"})
	p.run()
	if n := len(p.api.told); n != 2 {
		t.Errorf("%d writes, want 2: %+v", n, p.api.told)
	}
}

// respond is an API server that refuses some of what it is told.
type respond func(n int, p task.Progress) (status int, said string)

// fencedWhen refuses what another attempt has taken over.
func fencedWhen(when func(n int, p task.Progress) bool) respond {
	return func(n int, p task.Progress) (int, string) {
		if when(n, p) {
			return http.StatusForbidden, "fenced: attempt 2 is current"
		}
		return http.StatusOK, ""
	}
}

// failReports records the pod only after so many reports.
func failReports(reports int) respond {
	return func(int, task.Progress) (int, string) {
		if reports--; reports >= 0 {
			return http.StatusUnprocessableEntity, "testing value /status/attempt/podUID failed"
		}
		return http.StatusOK, ""
	}
}

func TestEnds(t *testing.T) {
	cases := map[string]struct {
		turns   []modeltest.Turn
		change  func(tk *task.Task, s *task.Snapshot)
		answer  respond
		code    int
		reason  task.Reason
		commits bool
	}{
		"a limit is committed": {
			turns:  []modeltest.Turn{writeTurn("a", "b"), writeTurn("b", "c")},
			change: func(tk *task.Task, _ *task.Snapshot) { tk.Limits.Steps = 1 },
			code:   task.ExitLimit, reason: task.ReasonStepLimit, commits: true,
		},
		"a provider that nobody knows is committed": {
			change: func(_ *task.Task, s *task.Snapshot) { s.Models[0].Provider = "Acme" },
			code:   task.ExitConfig, reason: task.ReasonMisconfigured, commits: true,
		},
		"a snapshot that is not the one that the task names": {
			change: func(tk *task.Task, _ *task.Snapshot) { tk.SnapshotHash = "0" },
			code:   task.ExitBadTask, reason: task.ReasonMisconfigured,
		},
		"an attempt that is fenced while it works": {
			turns:  []modeltest.Turn{writeTurn("a", "b"), {Text: "done"}},
			answer: fencedWhen(func(n int, _ task.Progress) bool { return n > 0 }),
			code:   task.ExitFenced, reason: task.ReasonFenced,
		},
		"an attempt that is fenced at its end": {
			turns:  []modeltest.Turn{{Text: "done"}},
			answer: fencedWhen(func(_ int, p task.Progress) bool { return p.Result != nil }),
			code:   task.ExitFenced, reason: task.ReasonFenced,
		},
		"a report that is refused before the operator has recorded the pod": {
			turns:  []modeltest.Turn{{Text: "done"}},
			answer: failReports(3),
			code:   task.ExitCommitted, reason: task.ReasonFinished, commits: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTestPod(t, tc.turns...)
			if tc.change != nil {
				tc.change(&p.task, &p.snapshot)
			}
			p.api.answer = tc.answer
			if code := p.run(); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if r := p.termination(t).Result; r.Reason != tc.reason || r.Committed != tc.commits && tc.commits {
				t.Errorf("the termination message says %s (%s), want %s", r.Reason, r.Message, tc.reason)
			}
			if p.api.committed() != tc.commits {
				t.Errorf("committed: %t, want %t", p.api.committed(), tc.commits)
			}
		})
	}
}

// The log of the pod says why an attempt ended that could not begin its work.
func TestAnAttemptThatCannotBeginFinishesItsEvents(t *testing.T) {
	p := newTestPod(t)
	p.snapshot.Models[0].Provider = "Acme"
	var log bytes.Buffer
	p.stdout = &log
	p.run()
	for _, want := range []string{`"type":"run.finished"`, `"reason":"Misconfigured"`, "Acme"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log of the pod lacks %s: %q", want, log.String())
		}
	}
}

func TestAnAttemptThatWasReplacedDoesNothing(t *testing.T) {
	p := newTestPod(t, modeltest.Turn{Text: "done"})
	d, err := journal.Open(journal.Options{Dir: p.state, RunUID: "uid-1", Attempt: 2, Now: time.Now})
	if err := errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	if code := p.run(); code != task.ExitFenced {
		t.Errorf("exit code %d, want %d", code, task.ExitFenced)
	}
	if len(p.api.told) != 0 || len(p.model.Requests()) != 0 {
		t.Errorf("it told %+v and asked %d times", p.api.told, len(p.model.Requests()))
	}
}

func TestATextThatDoesNotFitGoesToAFile(t *testing.T) {
	long := strings.Repeat("word ", 4000)
	p := newTestPod(t, modeltest.Turn{Text: long})
	p.run()
	r := p.api.told[len(p.api.told)-1].Result
	if len(r.Text) > task.MaxText || len(r.Files) != 1 || !strings.Contains(r.Message, r.Files[0].Path) {
		t.Fatalf("text of %d bytes, files %+v, message %q", len(r.Text), r.Files, r.Message)
	}
	whole, err := os.ReadFile(filepath.Join(p.workspace, textFile))
	if err != nil || string(whole) != long {
		t.Errorf("the file has %d bytes, %v", len(whole), err)
	}
	if last := p.termination(t); last.Result.Text == "" {
		t.Error("the termination message has no text at all")
	}
}

// Where others work on the same files each has a file of its own for that.
func TestATextThatDoesNotFitIsNotThatOfAnother(t *testing.T) {
	p := newTestPod(t, modeltest.Turn{Text: strings.Repeat("word ", 4000)})
	p.origin = t.TempDir()
	p.run()
	r := p.api.told[len(p.api.told)-1].Result
	if want := "/workspace/.deckhand/fix-1/result.txt"; len(r.Files) != 1 || r.Files[0].Path != want || !strings.Contains(r.Message, want) {
		t.Errorf("files %+v, message %q, want %s", r.Files, r.Message, want)
	}
}

// What a command left in the place of that file must not hold the end up.
func TestATextIsNotWrittenIntoAPipe(t *testing.T) {
	p := newTestPod(t, modeltest.Turn{Text: strings.Repeat("word ", 4000)})
	at := filepath.Join(p.workspace, textFile)
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), syscall.Mkfifo(at, 0o600)); err != nil {
		t.Fatal(err)
	}
	if code := p.run(); code != task.ExitCommitted {
		t.Fatalf("exit code %d", code)
	}
	r := p.api.told[len(p.api.told)-1].Result
	if len(r.Files) != 0 || !strings.Contains(r.Message, "is cut here") {
		t.Errorf("files %+v, message %q", r.Files, r.Message)
	}
}

// allOutput is what an attempt leaves behind: its journal, what it told and
// its last word.
func (p *testPod) allOutput(t *testing.T) string {
	t.Helper()
	told, err := json.Marshal(p.api.told)
	if err != nil {
		t.Fatal(err)
	}
	last, _ := os.ReadFile(p.last)
	seen := string(told) + string(last)
	err = filepath.WalkDir(p.state, func(path string, d os.DirEntry, err error) error {
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

func TestTheKeyIsNowhere(t *testing.T) {
	p := newTestPod(t, writeTurn("a.txt", "x"), modeltest.Turn{Text: "the key is " + secret})
	p.task.Prompt = "my key is " + secret
	var out strings.Builder
	p.stdout = &out
	p.run()
	seen := p.allOutput(t) + out.String()
	for _, r := range p.model.Requests() {
		seen += string(r.Raw)
	}
	if strings.Contains(seen, secret) {
		t.Error("the key is in the events, the journal, the status, the termination message or a request")
	}
	if told := p.api.told[len(p.api.told)-1]; !strings.Contains(told.Result.Text, "‹secret:anthropic/api-key›") {
		t.Errorf("status: %+v", told)
	}
}

func TestARunThatIsToStopDoesNotBegin(t *testing.T) {
	p := newTestPod(t, modeltest.Turn{Text: "done"})
	p.signalsFile = filepath.Join(t.TempDir(), "signals.json")
	writeFile(t, p.signalsFile, `{"stop":true}`)
	if code := p.run(); code != task.ExitWorkFailed {
		t.Errorf("exit code %d, want %d", code, task.ExitWorkFailed)
	}
	if r := p.termination(t).Result; r.Reason != task.ReasonStopped || !r.Committed {
		t.Errorf("ended %+v", r)
	}
	if n := len(p.model.Requests()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

func TestMainRefusesToBeASecondProcess(t *testing.T) {
	if code := Main(); code != task.ExitBadTask {
		t.Errorf("exit code %d, want %d", code, task.ExitBadTask)
	}
}
