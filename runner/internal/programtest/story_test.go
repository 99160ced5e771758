package programtest_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// expect runs to an end that must be the one wanted.
func (b *bench) expect(t testing.TB, want task.Reason) {
	t.Helper()
	code := b.run(t)
	if b.out.Len() == 0 {
		t.Fatalf("exit code %d, and nothing to tell:\n%s", code, b.log.String())
	}
	if e, finished := b.end(t); finished.Reason != want || code != task.ExitCode(want) {
		t.Fatalf("ended %s (%s) with exit code %d, want %s\n%s", finished.Reason, e.Message, code, want, b.log.String())
	}
}

// events are those of one type.
func (b *bench) events(t testing.TB, of step.EventType) []events.Line {
	t.Helper()
	var all []events.Line
	for line := range strings.Lines(b.out.String()) {
		var e events.Line
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if e.Type == of {
			all = append(all, e)
		}
	}
	return all
}

// shown is the session of a scope in words, as events tell of it.
func (b *bench) shown(t testing.TB, scope step.Scope) string {
	t.Helper()
	var all []step.Step
	for _, e := range b.events(t, step.EventStepFinished) {
		var data events.StepFinished
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatal(err)
		}
		if e.Scope == scope {
			all = append(all, data.Step)
		}
	}
	return inWords(all)
}

// write puts a file where it is to be, with the directories above it.
func write(t testing.TB, content string, path ...string) string {
	t.Helper()
	file := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// signal says something in the place of the operator.
func signal(t testing.TB, file string, s task.Signals) string {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	// Renamed, as the kubelet does it: the runner may read the file at any time.
	if err := os.Rename(write(t, string(data), file+".new"), file); err != nil {
		t.Fatal(err)
	}
	return file
}

// wants compares a session to what is wanted of it.
func wants(t testing.TB, got string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, strings.Split(got, "\n")); diff != "" {
		t.Errorf("the session -want +got:\n%s", diff)
	}
}

// The example with two agents works as it is, but for where its models are. The
// agent that is called has a session of its own, in its words, by its Model and
// in its scope; one meter counts both.
func TestAnAgentThatCallsAnother(t *testing.T) {
	server := httptest.NewServer(modeltest.NewServer(modeltest.Script{Models: map[string]modeltest.Dialogue{
		"llama3.2": {Turns: []modeltest.Turn{
			call("critic", `{"prompt":"Read haiku.txt"}`),
			{Text: "The critic says: {{.LastToolResult}}"},
		}},
		"llama3.2:1b": {Turns: []modeltest.Turn{call("Read", `{"path":"haiku.txt"}`), {Text: "It needs a boat."}}},
	}}))
	t.Cleanup(server.Close)
	example, err := os.ReadFile("../../../cmd/runner-local/testdata/agents.json")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, "", nil)
	write(t, strings.ReplaceAll(string(example), "http://127.0.0.1:11434", server.URL), b.task)
	write(t, "night\n", b.workspace, "haiku.txt")
	b.expect(t, task.ReasonFinished)

	wants(t, b.transcript(t),
		"user: Write a haiku about a harbor at night, and have it reviewed.",
		"assistant:  critic", "tool: It needs a boat.", "assistant: The critic says: It needs a boat.")
	scope := step.Scope{Depth: 1, Parent: "s2c1", Agent: "critic"}
	wants(t, b.shown(t, scope),
		"user: Read haiku.txt", "assistant:  Read", "tool: 1  night", "[lines 1 to 1 of 1]", "assistant: It needs a boat.")
	opened, closed := b.events(t, step.EventChildStarted), b.events(t, step.EventChildFinished)
	if len(opened) != 1 || len(closed) != 1 || opened[0].Scope != scope || closed[0].Scope != scope {
		t.Errorf("opened %+v, closed %+v", opened, closed)
	}
	if _, finished := b.end(t); finished.Counts.ModelCalls != 4 || finished.Counts.ToolCalls != 2 {
		t.Errorf("it counts %+v", finished.Counts)
	}
}

// Each Model is given the key of its own Secret, and neither is shown.
func TestSecretsInADirectory(t *testing.T) {
	const other = "sk-other-key-9876543210"
	boss := serve(t, call("helper", `{"prompt":"help"}`), modeltest.Turn{Text: "He says: {{.LastToolResult}}"})
	helper := httptest.NewServer(modeltest.NewServer(modeltest.Script{
		Key: other, Models: map[string]modeltest.Dialogue{modeltest.ModelName: {Turns: []modeltest.Turn{{Text: "My key is " + other}}}},
	}))
	t.Cleanup(helper.Close)
	b := newBench(t, boss.URL+"/v1", func(_ *task.Task, s *task.Snapshot) {
		second := s.Models[0]
		second.Name, second.Endpoint, second.Secret = "n", helper.URL+"/v1", "others"
		s.Models = append(s.Models, second)
		s.Agents = []task.Agent{{Name: "helper", Instructions: "Help.", Models: []string{"n"}}}
		s.Agent.Tools = []task.Tool{{Agent: "helper"}}
	})
	dir := t.TempDir()
	write(t, key+"\n", dir, "keys", "api-key")
	write(t, other+"\n", dir, "others", "api-key")
	b.keys = []string{"--secrets", dir}
	b.expect(t, task.ReasonFinished)

	_, finished := b.end(t)
	if want := "He says: My key is ‹secret:others/api-key›"; finished.Text != want {
		t.Errorf("it says %q, want %q", finished.Text, want)
	}
	if shown := b.out.String() + b.log.String(); strings.Contains(shown, key) || strings.Contains(shown, other) {
		t.Error("a key is in the output")
	}
}

// A question waits for its answer in the signals file, which comes while it
// waits.
func TestAQuestionAndItsAnswer(t *testing.T) {
	b := newBench(t, serve(t, call("Ask", `{"question":"Which branch?"}`), modeltest.Turn{Text: "{{.LastToolResult}}"}).URL+"/v1",
		func(_ *task.Task, s *task.Snapshot) { s.Agent.Tools = []task.Tool{{Builtin: "Ask"}} })
	b.signals = filepath.Join(t.TempDir(), "signals.json")
	c := b.command(t)
	lines, err := pipe(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for line := range lines {
		b.out.WriteString(line + "\n")
		var e events.Line
		var asked events.Pending
		if json.Unmarshal([]byte(line), &e) == nil && e.Type == step.EventPending && json.Unmarshal(e.Data, &asked) == nil {
			signal(t, b.signals, task.Signals{Decisions: []task.Decision{
				{Name: "main-it-is", By: "ann", Request: asked.ID, Type: task.DecisionAnswer, Value: "main"},
			}})
		}
	}
	_ = c.Wait() // the exit code says it
	if code := c.ProcessState.ExitCode(); code != task.ExitCommitted {
		t.Fatalf("exit code %d\n%s%s", code, b.out.String(), b.log.String())
	}
	if _, finished := b.end(t); finished.Text != "Answer by ann:\nmain" {
		t.Errorf("it says %q", finished.Text)
	}
	if decided := b.events(t, step.EventDecided); len(decided) != 1 {
		t.Errorf("%d decisions were acted on, want 1", len(decided))
	}
}

// A message is delivered before the next turn, and once, though the file keeps it
// for good.
func TestAMessageIsDeliveredOnce(t *testing.T) {
	b := newBench(t, serve(t, call("Think", `{"thought":"hm"}`), modeltest.Turn{Text: "ok"}).URL+"/v1", nil)
	b.signals = signal(t, filepath.Join(t.TempDir(), "signals.json"), task.Signals{Decisions: []task.Decision{
		{Name: "hurry", By: "ann", Type: task.DecisionMessage, Value: "Hurry up."},
	}})
	b.expect(t, task.ReasonFinished)
	b.expect(t, task.ReasonFinished)
	wants(t, b.transcript(t), "user: go", "user: Hurry up.", "assistant:  Think", "tool: OK", "assistant: ok")
}

func TestStopIsObeyed(t *testing.T) {
	b := newBench(t, serve(t, modeltest.Turn{Text: "never"}).URL+"/v1", nil)
	b.signals = signal(t, filepath.Join(t.TempDir(), "signals.json"), task.Signals{Stop: true})
	b.expect(t, task.ReasonStopped)
}

func TestWhatTheWorkspaceSaysOfItself(t *testing.T) {
	cases := map[string]struct {
		ignore bool
		want   bool
	}{
		"is in the first message":         {ignore: false, want: true},
		"is not where nobody wants it to": {ignore: true, want: false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, serve(t, modeltest.Turn{Text: "ok"}).URL+"/v1", func(_ *task.Task, s *task.Snapshot) {
				s.Agent.IgnoreInstructions = tc.ignore
			})
			write(t, "Tabs, not spaces.\n", b.workspace, "AGENTS.md")
			b.expect(t, task.ReasonFinished)
			if told := b.transcript(t); strings.Contains(told, "Tabs, not spaces.") != tc.want || !strings.HasPrefix(told, "user: go") {
				t.Errorf("the session is\n%s", told)
			}
		})
	}
}

// Beside the workspace there are places for scratch files and for what is to be
// remembered.
func TestPlacesForFiles(t *testing.T) {
	b := newBench(t, serve(t,
		call("Write", `{"path":"/tmp/draft.txt","content":"draft\n"}`),
		call("Read", `{"path":"/tmp/draft.txt"}`),
		call("Write", `{"path":"/memories/pilot.txt","content":"Ann\n"}`),
		call("Recall", `{"query":"Ann"}`),
		call("Write", `{"path":"/results/x.txt","content":"x"}`),
		modeltest.Turn{Text: "ok"},
	).URL+"/v1", func(_ *task.Task, s *task.Snapshot) {
		s.Agent.Tools = append(s.Agent.Tools, task.Tool{Builtin: "Recall"})
	})
	b.expect(t, task.ReasonFinished)
	wants(t, b.transcript(t), "user: go",
		"assistant:  Write", "tool: Created /tmp/draft.txt (6 bytes)",
		"assistant:  Read", "tool: 1  draft", "[lines 1 to 1 of 1]",
		"assistant:  Write", "tool: Created /memories/pilot.txt (4 bytes)",
		"assistant:  Recall", "tool: /memories/pilot.txt (1 match)", "    1  Ann",
		"assistant:  Write", "tool: Error: permission denied for write on /results/x.txt", "- /results is read-only. Write below /workspace.",
		"assistant: ok")
	if entries, err := os.ReadDir(b.workspace); err != nil || len(entries) != 0 {
		t.Errorf("in the workspace are %v, %v", entries, err)
	}
}

// A result too large for the session is offloaded, and read from there.
func TestALargeResultIsOffloaded(t *testing.T) {
	const line = "All work and no play makes Jack a dull boy.\n"
	long := httptest.NewServer(modeltest.NewServer(modeltest.Script{Models: map[string]modeltest.Dialogue{
		modeltest.ModelName: {Turns: []modeltest.Turn{{Text: strings.Repeat(line, 2500)}}},
	}}))
	t.Cleanup(long.Close)
	b := newBench(t, serve(t, call("writer", `{"prompt":"write"}`), call("Read", `{"path":"/results/s2c1","offset":2400,"limit":1}`), modeltest.Turn{Text: "ok"}).URL+"/v1",
		func(_ *task.Task, s *task.Snapshot) {
			second := s.Models[0]
			second.Name, second.Endpoint = "n", long.URL+"/v1"
			s.Models = append(s.Models, second)
			s.Agents = []task.Agent{{Name: "writer", Instructions: "Write.", Models: []string{"n"}}}
			s.Agent.Tools = append(s.Agent.Tools, task.Tool{Agent: "writer"})
		})
	b.expect(t, task.ReasonFinished)
	told := b.transcript(t)
	for _, piece := range []string{"All of it is in the file /results/s2c1", "2401  All work and no play", "of 2500"} {
		if !strings.Contains(told, piece) {
			t.Errorf("the session lacks %q", piece)
		}
	}
	if len(told) > 4096 {
		t.Errorf("the session has %d bytes", len(told))
	}
}

// The other wire works by hand too: what a model thought goes back to it with
// its signature, or the server would refuse the second turn.
func TestTheWireOfMessages(t *testing.T) {
	think := call("Write", `{"path":"a.txt","content":"one\n"}`)
	think.Thinking = "A file, then."
	b := newBench(t, serve(t, think, modeltest.Turn{Text: "done"}).URL, func(_ *task.Task, s *task.Snapshot) {
		s.Models[0].Provider = "Anthropic"
	})
	b.expect(t, task.ReasonFinished)
	wants(t, b.transcript(t), "user: go", "assistant:  Write", "tool: Created /workspace/a.txt (4 bytes)", "assistant: done")
}

// What is said wrong is answered with what to say.
func TestFlags(t *testing.T) {
	b := newBench(t, "http://127.0.0.1:1/v1", nil)
	places := []string{"--task", b.task, "--workspace", b.workspace, "--state", b.state}
	cases := map[string]struct {
		args []string
		code int
		want []string
	}{
		"help":                      {[]string{"--help"}, 0, []string{"-task", "-workspace", "-state", "-key-file", "-key-env", "-secrets", "-signals"}},
		"nothing":                   {nil, task.ExitBadTask, []string{"say --task FILE, --workspace DIR and --state DIR"}},
		"a word too many":           {append(places, "now"), task.ExitBadTask, []string{`"now" is no flag`}},
		"a variable that is not":    {append(places, "--key-env", "NO_SUCH_KEY"), task.ExitBadTask, []string{"NO_SUCH_KEY", "not set"}},
		"no word of where keys are": {places, task.ExitBadTask, []string{"key api-key of the Secret keys", "--key-file FILE or --key-env NAME", "--secrets DIR"}},
		"a file that is not":        {append(places, "--key-file", "no-such-key"), task.ExitBadTask, []string{"key api-key of the Secret keys", "open no-such-key"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), program(t, "runner-local"), tc.args...)
			said, _ := c.CombinedOutput() // the exit code says it
			if code := c.ProcessState.ExitCode(); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			for _, piece := range tc.want {
				if !strings.Contains(string(said), piece) {
					t.Errorf("it does not say %q:\n%s", piece, said)
				}
			}
		})
	}
}
