//go:build linux

package python_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/sandboxtest"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/python"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// realKit is a kit over the program that is in every sandbox.
func realKit(t *testing.T, o python.Options) (*kit, *sandboxtest.Server) {
	t.Helper()
	client, server := sandboxtest.New(t)
	k := &kit{T: t, box: client, root: server.Workspace, home: server.Home, program: program(t)}
	k.over(o)
	return k, server
}

func TestInARealSandbox(t *testing.T) {
	const lost = "; its variables are lost, the next call has a new one"
	k, _ := realKit(t, python.Options{})
	for _, tc := range []struct{ code, want string }{
		{"import os, subprocess\nx = 1\nos.path.expanduser('~'), os.getcwd()", "('~', '/workspace')\n"},
		{"p = subprocess.Popen(['sleep', '1000'])\nsubprocess.run(['cat']).returncode, x", "(0, 1)\n"},
		{"p.poll()", "(no output)"}, // it lives with the interpreter
		{"while True: pass", "Traceback (most recent call last):\n  File \"<call 4>\", line 1, in <module>\n    while True: pass\nKeyboardInterrupt\ninterrupted: timed out after 2s; the variables are kept"},
		{"x", "1\n"},
		{"import time\nfor i in range(300): subprocess.Popen(['sleep', '1000'])\ntime.sleep(1000)", "the interpreter ended (killed: more processes or threads at once than it may have)" + lost},
		{"'x' in globals()", "False\n"},
		{"import os\nos.kill(os.getppid(), 9); import time; time.sleep(1000)", "the interpreter ended (killed: SIGKILL)" + lost},
		{"1", "1\n"},
	} {
		timeout := 60
		if strings.Contains(tc.want, "timed out") {
			timeout = 2
		}
		if diff := cmp.Diff(tc.want, k.call(map[string]any{"code": tc.code, "timeout_seconds": timeout})); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.code, diff)
		}
	}
}

func TestTheSandboxGoesAway(t *testing.T) {
	k, server := realKit(t, python.Options{})
	k.run("x = 1")
	k.call(map[string]any{"code": "x = 1", "session": "other"})
	k.emit = func(string) { _ = syscall.Kill(server.FirstPID(), syscall.SIGKILL) }
	want := "Error: the sandbox was restarted; background jobs, interpreters and working directory are lost; this was killed with it and may have partly happened\nThe output until then:\nhi\n"
	if got := k.run("print('hi')\nimport time; time.sleep(1000)"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	k.emit = func(string) {}
	server.Restart(t)
	if got, want := k.run("'x' in globals()"), "False\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	want = "[This is a new interpreter, without the variables of the last one: killed: the sandbox was restarted; background jobs, interpreters and working directory are lost.]\nFalse\n"
	if got := k.call(map[string]any{"code": "'x' in globals()", "session": "other"}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheRunnerGoesAway(t *testing.T) {
	state := t.TempDir()
	k, server := realKit(t, python.Options{State: state})
	k.run("import os\nopen('pid', 'w').write(str(os.getpid()))")
	client, _ := k.box.(*sandbox.Client)
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	next := sandbox.Dial(server.Socket)
	t.Cleanup(func() { _ = next.Close() })
	k.box = next
	k.over(python.Options{State: state})
	if diff := cmp.Diff([]string{"python session main"}, k.interpreters.Lost()); diff != "" {
		t.Errorf("Lost() -want +got:\n%s", diff)
	}
	got := k.run("import os\nos.path.exists('/proc/' + open('pid').read())")
	if !strings.HasSuffix(got, "lost when the runner was restarted.]\nFalse\n") {
		t.Errorf("got %q", got)
	}
}

// BenchmarkOne is what a call costs in an interpreter that runs.
func BenchmarkOne(b *testing.B) {
	client, server := sandboxtest.New(b)
	all, err := python.New(client, python.Options{Program: program(b), Workspace: server.Workspace, State: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer all.Close()
	one := all.Tool(python.Use{})
	for b.Loop() {
		got, err := one.Call(b.Context(), tool.Call{ID: "c1", Args: []byte(`{"code":"1"}`), Emit: func(string) {}})
		if err != nil || got.Text != "1\n" {
			b.Fatal(got, err)
		}
	}
}
