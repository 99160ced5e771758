package programtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// programs is the directory of the programs that were built.
var programs struct {
	sync.Mutex

	dir string
}

// program builds a program once for all tests, static as it is released, and returns its path.
func program(t testing.TB, name string) string {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	path := filepath.Join(programs.dir, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "github.com/deckhand-dev/deckhand/cmd/"+name)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building: %v: %s", err, out)
	}
	return path
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "programs")
	if err != nil {
		panic(err)
	}
	programs.dir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

const key = "sk-test-key-0123456789"

// A bench is the directories and the task of one run.
type bench struct {
	workspace, state, task string
	keys                   []string // the flags that say where keys are
	signals                string   // the file of what the operator says, if any
	out, log               bytes.Buffer
}

// newBench lays out a run against a model endpoint; change may alter its task.
func newBench(t testing.TB, endpoint string, change func(tk *task.Task, s *task.Snapshot)) *bench {
	t.Helper()
	dir := t.TempDir()
	b := &bench{
		workspace: filepath.Join(dir, "workspace"), state: filepath.Join(dir, "state"), task: filepath.Join(dir, "task.json"),
		keys: []string{"--key-env", "TEST_KEY"},
	}
	tk := task.Task{Prompt: "go"}
	s := task.Snapshot{
		Agent:  task.Agent{Name: "a", Instructions: "Work.", Tools: []task.Tool{{Builtin: "Files"}, {Builtin: "Think"}}},
		Models: []task.Model{{Name: "m", Provider: "OpenAICompatible", Model: modeltest.ModelName, Endpoint: endpoint, SecretKey: task.SecretKey{Secret: "keys", Key: "api-key"}}},
	}
	if change != nil {
		change(&tk, &s)
	}
	data, err := json.Marshal(map[string]any{"task": tk, "snapshot": s})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.task, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(b.workspace, 0o700); err != nil {
		t.Fatal(err)
	}
	return b
}

// command is runner-local over the bench.
func (b *bench) command(t testing.TB) *exec.Cmd {
	t.Helper()
	args := append([]string{"--task", b.task, "--workspace", b.workspace, "--state", b.state, "--signals", b.signals}, b.keys...)
	c := exec.CommandContext(t.Context(), program(t, "runner-local"), args...)
	c.Env = append(os.Environ(), "TEST_KEY="+key)
	c.Stdout, c.Stderr = &b.out, &b.log
	return c
}

// run runs it to its end.
func (b *bench) run(t testing.TB) int {
	t.Helper()
	c := b.command(t)
	_ = c.Run() // the exit code says it
	return c.ProcessState.ExitCode()
}

// end is the last event.
func (b *bench) end(t testing.TB) (events.Line, events.RunFinished) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(b.out.String()), "\n")
	var e events.Line
	var finished events.RunFinished
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &e); err != nil {
		t.Fatalf("the last line is no event: %v\n%s\n%s", err, b.out.String(), b.log.String())
	}
	if err := json.Unmarshal(e.Data, &finished); err != nil {
		t.Fatal(err)
	}
	return e, finished
}

// transcript is the recorded session of the Run in words.
func (b *bench) transcript(t testing.TB) string {
	t.Helper()
	d, err := journal.Open(journal.Options{Dir: b.state, RunUID: journal.Owner(b.state), Attempt: 99, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	book, err := state.Replay(d.Read())
	if err != nil {
		t.Fatal(err)
	}
	return inWords(book.Session("").Steps)
}

// inWords is a session, a line for each that says something.
func inWords(steps []step.Step) string {
	var lines []string
	for _, st := range steps {
		line := string(st.Role) + ": " + st.Text()
		for _, c := range st.Calls {
			line += " " + c.Name
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// serve plays a dialogue.
func serve(t testing.TB, turns ...modeltest.Turn) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(modeltest.NewServer(modeltest.Script{
		Key: key, Models: map[string]modeltest.Dialogue{modeltest.ModelName: {Turns: turns}},
	}))
	t.Cleanup(s.Close)
	return s
}

func call(name, args string) modeltest.Turn {
	return modeltest.Turn{Calls: []modeltest.Call{{Name: name, Args: json.RawMessage(args)}}}
}

// denied is a policy that denies calls.
func denied(when string) []task.Rule { return []task.Rule{{Name: "r", When: when, Answer: "Deny"}} }

func TestRuns(t *testing.T) {
	cases := map[string]struct {
		turns  []modeltest.Turn
		change func(*task.Task, *task.Snapshot)
		reason task.Reason
		code   int
		says   string // part of the message or of the session
	}{
		"work with files": {
			turns: []modeltest.Turn{
				call("Write", `{"path":"a.txt","content":"one\n"}`),
				call("Read", `{"path":"a.txt"}`),
				{Text: "I wrote a.txt"},
			},
			reason: task.ReasonFinished, code: task.ExitCommitted, says: "I wrote a.txt",
		},
		"an output by schema": {
			turns: []modeltest.Turn{{Text: "done"}, call("Finish", `{"n":"x"}`), call("Finish", `{"n":1}`)},
			change: func(_ *task.Task, s *task.Snapshot) {
				s.Agent.OutputSchema = []byte(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`)
			},
			reason: task.ReasonFinished, code: task.ExitCommitted, says: "Call the tool Finish",
		},
		"work that is rejected": {
			turns:  []modeltest.Turn{call("Reject", `{"reason":"no tests here"}`)},
			reason: task.ReasonRejected, code: task.ExitWorkFailed, says: "no tests here",
		},
		"arguments that are almost JSON": {
			turns:  []modeltest.Turn{call("Think", `"{'thought': 'hm',}"`), {Text: "ok"}},
			reason: task.ReasonFinished, code: task.ExitCommitted, says: "tool: OK",
		},
		"arguments that are no JSON": {
			turns:  []modeltest.Turn{call("Think", `"{\"thought\": \"hm"`), {Text: "ok"}},
			reason: task.ReasonFinished, code: task.ExitCommitted, says: "tool: Error: ",
		},
		"a path outside of the workspace": {
			turns:  []modeltest.Turn{call("Read", `{"path":"../../etc/passwd"}`), {Text: "ok"}},
			reason: task.ReasonFinished, code: task.ExitCommitted, says: "tool: Error: ",
		},
		"a step limit": {
			turns:  []modeltest.Turn{call("Think", `{"thought":"1"}`), call("Think", `{"thought":"2"}`), {Text: "ok"}},
			change: func(tk *task.Task, _ *task.Snapshot) { tk.Limits.Steps = 2 },
			reason: task.ReasonStepLimit, code: task.ExitLimit, says: "Used 2 of 2 steps",
		},
		"a web page in place of a model": {
			turns:  []modeltest.Turn{{Faults: []modeltest.Fault{{Kind: modeltest.FaultHTML, Times: -1}}}},
			reason: task.ReasonMisconfigured, code: task.ExitConfig, says: "check the Model's endpoint",
		},
		"a context that is too long": {
			turns:  []modeltest.Turn{{Faults: []modeltest.Fault{{Kind: modeltest.FaultStatus, Status: 400, Message: "This model's maximum context length is 8192 tokens.", Times: -1}}}},
			reason: task.ReasonContextTooLong, code: task.ExitLimit,
		},
		"an answer that breaks off once": {
			turns:  []modeltest.Turn{{Text: "a long answer", Faults: []modeltest.Fault{{Kind: modeltest.FaultCut, After: 80}}}},
			reason: task.ReasonFinished, code: task.ExitCommitted, says: "a long answer",
		},
		"a provider that nobody knows": {
			change: func(_ *task.Task, s *task.Snapshot) { s.Models[0].Provider = "Acme" },
			reason: task.ReasonMisconfigured, code: task.ExitConfig,
		},
		"a rule with a former name of a tool": {
			change: func(_ *task.Task, s *task.Snapshot) { s.Agent.Policy = denied("tool == 'think'") },
			reason: task.ReasonMisconfigured, code: task.ExitConfig, says: "the tool think is called Think: write 'Think'",
		},
		"a rule with a test of a former name": {
			change: func(_ *task.Task, s *task.Snapshot) { s.Agent.Policy = denied("tool.startsWith('th')") },
			reason: task.ReasonMisconfigured, code: task.ExitConfig, says: "this holds for think, as the tool Think was called",
		},
		"a Snapshot of before, whose rule denies a tool by its former name": {
			turns: []modeltest.Turn{call("think", `{"thought":"hm"}`), call("finish", `{"text":"ok"}`)},
			change: func(_ *task.Task, s *task.Snapshot) {
				s.Version, s.Agent.Policy = 1, denied("tool == 'think'")
			},
			reason: task.ReasonFinished, code: task.ExitCommitted, says: "tool: Error: Denied by policy rule r",
		},
		"a Snapshot of before, whose tools have their former names": {
			turns:  []modeltest.Turn{call("Think", `{"thought":"hm"}`), call("reject", `{"reason":"I have no Think"}`)},
			change: func(_ *task.Task, s *task.Snapshot) { s.Version = 1 },
			reason: task.ReasonRejected, code: task.ExitWorkFailed, says: "I have no Think",
		},
		"a cost limit without prices": {
			change: func(tk *task.Task, _ *task.Snapshot) { tk.Limits.CostMicroUSD = 1 },
			reason: task.ReasonMisconfigured, code: task.ExitConfig,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, serve(t, tc.turns...).URL+"/v1", tc.change)
			code := b.run(t)
			if code != tc.code {
				t.Errorf("exit code %d, want %d\n%s", code, tc.code, b.log.String())
			}
			if strings.Contains(b.out.String()+b.log.String(), key) {
				t.Error("the key is in the output")
			}
			if b.out.Len() == 0 {
				return // it ended before there was anything to tell
			}
			e, finished := b.end(t)
			if finished.Reason != tc.reason {
				t.Errorf("ended %s (%s), want %s", finished.Reason, e.Message, tc.reason)
			}
			if !strings.Contains(e.Message+"\n"+b.transcript(t), tc.says) {
				t.Errorf("%q is neither in %q nor in\n%s", tc.says, e.Message, b.transcript(t))
			}
		})
	}
}

func TestAKeyThatIsRefused(t *testing.T) {
	b := newBench(t, serve(t, modeltest.Turn{Text: "hi"}).URL+"/v1", nil)
	c := b.command(t)
	c.Env = append(c.Env, "TEST_KEY=sk-wrong-key")
	_ = c.Run()
	e, finished := b.end(t)
	if c.ProcessState.ExitCode() != task.ExitConfig || finished.Reason != task.ReasonMisconfigured {
		t.Errorf("exit code %d, %s", c.ProcessState.ExitCode(), e.Message)
	}
	if want := "check the key api-key of the Secret keys"; !strings.Contains(e.Message, want) {
		t.Errorf("%q is not in %q", want, e.Message)
	}
}

func TestAModelThatIsAway(t *testing.T) {
	if testing.Short() {
		t.Skip("retries take seconds")
	}
	t.Parallel()
	b := newBench(t, serve(t, modeltest.Turn{Faults: []modeltest.Fault{{Kind: modeltest.FaultStatus, Status: 503, Times: -1}}}).URL+"/v1", func(t *task.Task, _ *task.Snapshot) {
		t.Limits.ModelOutageSeconds = new(int64)
	})
	if code := b.run(t); code != task.ExitUnavailable {
		t.Errorf("exit code %d, want %d", code, task.ExitUnavailable)
	}
}

func TestEventsAreNumberedThrough(t *testing.T) {
	b := newBench(t, serve(t, call("Think", `{"thought":"1"}`), modeltest.Turn{Text: "ok"}).URL+"/v1", nil)
	b.run(t)
	b.run(t)
	last := int64(0)
	for line := range strings.Lines(b.out.String()) {
		var e events.Line
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if e.N != last+1 && e.Type != step.EventDropped {
			t.Errorf("event %d follows %d", e.N, last)
		}
		last = e.N
	}
}

func TestBadTasks(t *testing.T) {
	cases := map[string]string{
		"no JSON":                   `{`,
		"a field that nobody knows": `{"task":{"prompt":"x","color":"red"},"snapshot":{"models":[{"name":"m"}]}}`,
		"a version of tomorrow":     `{"task":{"prompt":"x","version":99},"snapshot":{"models":[{"name":"m"}]}}`,
		"an Agent without a Model":  `{"task":{"prompt":"x"},"snapshot":{}}`,
	}
	for name, written := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "", nil)
			if err := os.WriteFile(b.task, []byte(written), 0o600); err != nil {
				t.Fatal(err)
			}
			if code := b.run(t); code != task.ExitBadTask {
				t.Errorf("exit code %d, want %d\n%s", code, task.ExitBadTask, b.log.String())
			}
		})
	}
}

func TestTheExampleIsATask(t *testing.T) {
	b := newBench(t, "", nil)
	b.task = "../../../cmd/runner-local/testdata/task.json"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := b.command(t)
	lines, err := pipe(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for line := range lines { // nobody listens there: it starts, and retries
		if strings.Contains(line, `"step.started"`) {
			_ = c.Process.Kill()
			cancel()
		}
	}
	_ = c.Wait()
	if ctx.Err() == nil {
		t.Errorf("it did not start:\n%s", b.log.String())
	}
}
