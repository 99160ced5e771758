package local

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/internal/cli/conversation"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/testing/terminaltest"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// builtDir has the program of runnerLocal; empty: no test needed it.
var builtDir string

// runnerLocal builds runner-local once for all tests, as it is released.
var runnerLocal = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "runner-local")
	if err != nil {
		return "", err
	}
	builtDir = dir
	path := filepath.Join(dir, "runner-local")
	build := exec.Command("go", "build", "-trimpath", "-o", path, "github.com/deckhand-dev/deckhand/cmd/runner-local")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building: %w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(builtDir) // of a test
	os.Exit(code)
}

const localKey = "sk-local-0123456789abcdef"

// shellManifests are a Model at an endpoint and an Agent that runs commands.
const shellManifests = `apiVersion: deckhand.dev/v1alpha1
kind: Model
metadata: {name: m}
spec:
  provider: OpenAICompatible
  endpoint: %s/v1
  modelID: ` + modeltest.ModelName + `
  apiKeySecretRef: {name: keys, key: api-key}
---
apiVersion: deckhand.dev/v1alpha1
kind: Agent
metadata: {name: worker}
spec:
  instructions: Work.
  model: m
  tools:
  - builtin: Files
  - builtin: Shell
    approval:
      when: shell.runs('rm')
  sandbox: {image: "debian:13"}
`

// A bench is a directory to work in, and manifests of an Agent whose model is scripted.
type bench struct {
	*session
	dir, outside, manifests string
	server                  *httptest.Server
}

func newBench(t *testing.T, turns ...modeltest.Turn) *bench {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("--local works on Linux only")
	}
	program, err := runnerLocal()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(modeltest.NewServer(modeltest.Script{
		Key: localKey, Models: map[string]modeltest.Dialogue{modeltest.ModelName: {Turns: turns}},
	}))
	t.Cleanup(server.Close)
	b := &bench{session: newSession(t), dir: t.TempDir(), outside: t.TempDir(), server: server}
	t.Setenv("PATH", filepath.Dir(program)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	b.manifests = filepath.Join(b.outside, "agent.yaml")
	b.write(t, b.manifests, fmt.Sprintf(shellManifests, server.URL))
	t.Setenv("XDG_STATE_HOME", filepath.Join(b.outside, "state"))
	t.Setenv("TEST_MODEL_KEY", localKey)
	return b
}

func (*bench) write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// runLocal runs the Agent of the manifests.
func (b *bench) runLocal(t *testing.T, args ...string) int {
	t.Helper()
	return b.run(t, append([]string{"-f", b.manifests, "-C", b.dir, "-p", "Work.", "--name", "try", "--model-key", "TEST_MODEL_KEY"}, args...)...)
}

func localCall(name string, args map[string]string) modeltest.Turn {
	data, err := json.Marshal(args)
	if err != nil {
		panic(err) // a map of strings always encodes
	}
	return modeltest.Turn{Calls: []modeltest.Call{{Name: name, Args: data}}}
}

func localShell(command string) modeltest.Turn {
	return localCall("Shell", map[string]string{"command": command})
}

// needLandlock skips a test where the kernel has not the version of Landlock that it needs.
func needLandlock(t *testing.T, version int) {
	t.Helper()
	if has := thisKernel().landlock; has < version {
		t.Skipf("this kernel has version %d of Landlock, and this needs %d", has, version)
	}
}

func TestRunLocal(t *testing.T) {
	needLandlock(t, landlockFiles)
	b := newBench(t,
		localCall("Write", map[string]string{"path": "a.txt", "content": "one\n"}),
		localShell("cat a.txt && echo two >b.txt && pwd"),
		modeltest.Turn{Text: "The end: {{.LastToolResult}}"})
	code := b.runLocal(t)
	if code != exit.OK {
		t.Fatalf("exit code %d\n%s\n%s", code, b.out.String(), b.err.String())
	}
	for _, want := range []string{"→ s2c1 Write", "● s6 The end: one", b.dir, "■ Finished"} {
		if !strings.Contains(b.out.String(), want) {
			t.Errorf("the output has no %q:\n%s", want, b.out.String())
		}
	}
	for _, want := range []string{"Run try works in " + b.dir, "spec.sandbox.image debian:13 is not used", "Commands of the agent are confined", "Run try Finished"} {
		if !strings.Contains(b.err.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, b.err.String())
		}
	}
	if text, err := os.ReadFile(filepath.Join(b.dir, "b.txt")); err != nil || string(text) != "two\n" {
		t.Errorf("b.txt has %q, %v", text, err)
	}
	if strings.Contains(b.out.String()+b.err.String(), localKey) {
		t.Error("the key is printed")
	}
}

// The manifests of the demo name an address of the cluster, and --endpoint another one.
func TestTheDemoIsPlayedLocally(t *testing.T) {
	const demo = "../../../examples/demo"
	var script modeltest.Script
	data, err := os.ReadFile(demo + "/model-server.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		var found corev1.ConfigMap
		if err := yaml.Unmarshal([]byte(document), &found); err != nil {
			t.Fatal(err)
		}
		if text := found.Data["script.json"]; text != "" && json.Unmarshal([]byte(text), &script) != nil {
			t.Fatalf("the script is %s", text)
		}
	}
	b := newBench(t)
	b.server.Config.Handler = modeltest.NewServer(script)
	code := b.run(t, "-f", demo, "-C", b.dir, "--endpoint", "scripted="+b.server.URL+"/v1")
	haiku, err := os.ReadFile(filepath.Join(b.dir, "haiku.txt"))
	if code != exit.OK || err != nil || !strings.HasPrefix(string(haiku), "Harbor lamps at night\n") {
		t.Errorf("exit code %d, %q, %v\n%s\n%s", code, haiku, err, b.out.String(), b.err.String())
	}
}

// attacks are what a command tries; each prints a word if it succeeds.
func (b *bench) attacks() string {
	address := strings.TrimPrefix(b.server.URL, "http://")
	host, port, _ := strings.Cut(address, ":")
	attempts := []string{
		fmt.Sprintf("cat %s/secret && echo LEAKED read", b.outside),
		fmt.Sprintf("ls %s && echo LEAKED list", b.outside),
		fmt.Sprintf("echo x >%s/new && echo LEAKED write", b.outside),
		fmt.Sprintf("echo x >>%s/secret && echo LEAKED append", b.outside),
		fmt.Sprintf("perl -e 'truncate(\"%s/secret\", 0) or exit 1' && echo LEAKED truncate", b.outside),
		fmt.Sprintf("head -c 1 /proc/%d/environ && echo LEAKED environment", os.Getpid()),
		fmt.Sprintf("exec 3</proc/%d/mem && echo LEAKED memory", os.Getpid()),
		fmt.Sprintf("readlink /proc/%d/cwd && echo LEAKED files", os.Getpid()),
		"cd /proc; for p in [0-9]*; do tr '\\0' '\\n' <$p/environ | grep -q ^TEST_MODEL_KEY= && echo LEAKED key; done",
		fmt.Sprintf("bash -c 'echo >/dev/tcp/%s/%s' && echo LEAKED network", host, port),
		"env | grep -q ^TEST_MODEL_KEY= && echo LEAKED variable",
	}
	if thisKernel().landlock >= landlockSignals {
		attempts = append(attempts, fmt.Sprintf("kill -0 %d && echo LEAKED signal", os.Getpid()))
	}
	var script strings.Builder
	for _, attempt := range attempts {
		fmt.Fprintf(&script, "( %s ) 2>/dev/null\n", attempt)
	}
	return script.String() + "echo tried"
}

// A command can make a link to anything, and the file tools are not confined by the kernel.
func TestFileToolsOfALocalRunFollowNoLinkOut(t *testing.T) {
	needLandlock(t, landlockFiles)
	b := newBench(t)
	b.write(t, filepath.Join(b.outside, "secret"), "hidden\n")
	b.server.Config.Handler = modeltest.NewServer(modeltest.Script{Key: localKey, Models: map[string]modeltest.Dialogue{
		modeltest.ModelName: {Turns: []modeltest.Turn{
			localShell("ln -s " + b.outside + "/secret link && echo linked"),
			localCall("Read", map[string]string{"path": "link"}),
			{Text: "Result: {{.LastToolResult}}"},
		}},
	}})
	code := b.runLocal(t)
	_, result, found := strings.Cut(b.out.String(), "Result: ")
	if code != exit.OK || !found || strings.Contains(result, "hidden") || !strings.Contains(result, "leads through a link") {
		t.Errorf("exit code %d\n%s", code, b.out.String())
	}
}

// What a command tries must work where it is not confined, or the test shows nothing.
func TestCommandsOfALocalRunAreConfined(t *testing.T) {
	needLandlock(t, landlockFiles)
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"confined":   {nil, nil},
		"unconfined": {[]string{"--unconfined"}, []string{"read", "list", "write", "append", "environment", "memory", "files", "key", "network", "signal"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.write(t, filepath.Join(b.outside, "secret"), "hidden\n")
			b.server.Config.Handler = modeltest.NewServer(modeltest.Script{Key: localKey, Models: map[string]modeltest.Dialogue{
				modeltest.ModelName: {Turns: []modeltest.Turn{localShell(b.attacks()), {Text: "Result: {{.LastToolResult}}"}}},
			}})
			if code := b.runLocal(t, tc.args...); code != exit.OK || !strings.Contains(b.out.String(), "tried") {
				t.Fatalf("exit code %d\n%s\n%s", code, b.out.String(), b.err.String())
			}
			_, result, _ := strings.Cut(b.out.String(), "Result: ")
			if tc.want == nil && strings.Contains(result, "LEAKED") {
				t.Errorf("a command got out:\n%s", b.out.String())
			}
			for _, word := range tc.want {
				if !strings.Contains(b.out.String(), "LEAKED "+word+"\n") {
					t.Errorf("unconfined, a command did not try %q:\n%s", word, b.out.String())
				}
			}
		})
	}
}

func TestApprovalsOfALocalRun(t *testing.T) {
	needLandlock(t, landlockFiles)
	for name, tc := range map[string]struct {
		typed string
		gone  bool
	}{"approved": {"y\n", true}, "denied": {"n\n", false}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, localShell("rm a.txt"), modeltest.Turn{Text: "Done."})
			b.write(t, filepath.Join(b.dir, "a.txt"), "x")
			screen, terminal, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer screen.Close()
			b.In, b.Err = terminal, terminal
			shown := make(chan string)
			go func() { shown <- terminaltest.AnswerAt(screen, "Approve this call?", tc.typed) }()
			code := b.runLocal(t)
			terminal.Close()
			text := <-shown
			_, err = os.Stat(filepath.Join(b.dir, "a.txt"))
			if code != exit.OK || os.IsNotExist(err) != tc.gone || !strings.Contains(text, "rm a.txt") {
				t.Errorf("exit code %d, %v\n%s\n%s", code, err, text, b.out.String())
			}
			for _, want := range []string{"Request:   s2c1-", "? Approval s2c1-", "→ s2c1 Shell", "← s2c1 Shell", "● s4 "} { // one id for the call
				if !strings.Contains(text+b.out.String(), want) {
					t.Errorf("it does not show %q:\n%s\n%s", want, text, b.out.String())
				}
			}
		})
	}
}

func TestCallsOfALocalRunAreDeniedWithoutATerminal(t *testing.T) {
	needLandlock(t, landlockFiles)
	b := newBench(t, localShell("rm a.txt"), modeltest.Turn{Text: "Then not."})
	b.write(t, filepath.Join(b.dir, "a.txt"), "x")
	code := b.runLocal(t)
	if _, err := os.Stat(filepath.Join(b.dir, "a.txt")); err != nil || code != exit.OK {
		t.Errorf("exit code %d, %v", code, err)
	}
	if want := "needs an approval, and is denied, because there is no terminal to ask you"; !strings.Contains(b.err.String(), want) {
		t.Errorf("it does not say %q:\n%s", want, b.err.String())
	}
	if want := "Denied by deckhand-local: There is no terminal, so no user was asked"; !strings.Contains(b.out.String(), want) {
		t.Errorf("the conversation does not say %q:\n%s", want, b.out.String())
	}
}

// A runner drops events that it cannot write, so that what it asks next would be lost.
func TestTheOutputOfALocalRunIsReadWhileTheUserIsAsked(t *testing.T) {
	s := newSession(t)
	keyboard, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keyboard.Close(); terminal.Close() })
	s.In = terminal
	asked := make(chan struct{})
	screen := s.Err
	s.Err = writerFunc(func(text []byte) (int, error) {
		if strings.HasPrefix(string(text), "Approve this call?") {
			close(asked)
		}
		return screen.Write(text)
	})
	signals := filepath.Join(t.TempDir(), "signals.json")
	w := &watch{
		run: Run{Streams: &s.Streams}, ctx: t.Context(), name: "try", signals: signals,
		printer: conversation.New(conversation.Options{Out: &s.out}), lines: s.NewLineReader(), ended: make(chan struct{}),
	}
	const pending = `{"v":1,"n":1,"attempt":1,"type":"pending","data":{"id":"s1c1","kind":"Approval","tool":"Shell","digest":"abc"}}` + "\n"
	rest := strings.Repeat(textEvent(2, "more"), 1000)
	output := io.MultiReader(strings.NewReader(pending), strings.NewReader(rest), readerFunc(func([]byte) (int, error) {
		<-asked
		_, err := io.WriteString(keyboard, "y\n") // only now that all is read
		return 0, cmp.Or(err, io.EOF)
	}))
	if err := w.read(output); err != nil {
		t.Fatal(err)
	}
	if sent, err := os.ReadFile(signals); err != nil || !strings.Contains(string(sent), `"type":"Approve"`) {
		t.Errorf("the Decisions are %s: %v", sent, err)
	}
}

// The runner would refuse it, and wait.
func TestALocalFormThatDoesNotFitAsAWholeIsAskedAgain(t *testing.T) {
	const atLeastOne = `{"type":"object","properties":{"a":{"type":"string"}},"minProperties":1,"additionalProperties":false}`
	s := newSession(t)
	signals := filepath.Join(t.TempDir(), "signals.json")
	w := &watch{run: Run{Streams: &s.Streams}, ctx: t.Context(), signals: signals}
	typed := []string{`{"c":1}`, "", "x"}
	f, _ := requests.FormOf(atLeastOne)
	err := w.askForm(events.Pending{ID: "s1c1", Kind: requests.KindQuestion, Schema: atLeastOne}, f, func(string) (string, error) {
		line := typed[0]
		typed = typed[1:]
		return line + "\n", nil
	})
	sent, readErr := os.ReadFile(signals)
	if err := cmp.Or(err, readErr); err != nil || len(typed) > 0 || !strings.Contains(string(sent), `{\"a\":\"x\"}`) || strings.Contains(string(sent), `\"c\"`) {
		t.Errorf("%v, %d lines are left, the Decisions are %s: %s", err, len(typed), sent, s.err.String())
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
