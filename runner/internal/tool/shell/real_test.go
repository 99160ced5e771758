//go:build linux

package shell_test

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/sandboxtest"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/shell"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// realKit is a kit over the program that is in every sandbox.
func realKit(t *testing.T, o shell.Options) (*kit, *sandboxtest.Server) {
	t.Helper()
	client, server := sandboxtest.New(t)
	k := &kit{T: t, box: client, root: server.Workspace, program: program(t, client), seen: func() {}}
	k.over(o)
	return k, server
}

// program is the shell of a sandbox.
func program(tb testing.TB, sb sandbox.Sandbox) string {
	tb.Helper()
	d, err := sb.Describe(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return d.Shell
}

func TestInARealSandbox(t *testing.T) {
	const killed = "\n[Set timeout_seconds, up to 21600, or background for what takes longer.]\nkilled: timed out after 2s"
	k, server := realKit(t, shell.Options{})
	for _, tc := range []struct{ command, want string }{
		{"mkdir d && cd d && echo hi; exit 3", "hi\n[The working directory is /workspace/d now.]\nexit code: 3"},
		{"pwd", "/workspace/d\nexit code: 0"},
		{"echo $HOME $DECKHAND_REQUEST", strings.ReplaceAll(server.Home, k.root, "/workspace") + " c3\nexit code: 0"},
		{"trap '' TERM INT HUP; echo hi; while :; do sleep 1; done", "hi" + killed},
		{"setsid sh -c 'sleep 1000' & echo hi", "hi\nexit code: 0"},
		{"(setsid sleep 1000 &) ; (sleep 1000; echo no) & echo hi", "hi\nexit code: 0"},
		{"i=0; while [ $i -lt 300 ]; do sleep 1000 & i=$((i+1)); done; wait", "(no output)\nkilled: more processes or threads at once than it may have"},
		{"kill -SEGV $$", "(no output)\nkilled: SIGSEGV"},
		{"cd ..; rmdir d; pwd", "/workspace\n[The working directory is /workspace now.]\nexit code: 0"},
	} {
		if diff := cmp.Diff(tc.want, k.call(shell.Name, map[string]any{"command": tc.command, "timeout_seconds": seconds(tc.want)})); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.command, diff)
		}
	}
}

// seconds is how long a command may take: one that times out has to start in it.
func seconds(want string) int {
	if strings.Contains(want, "timed out") {
		return 2
	}
	return 60
}

// The tail is the real one, and memory is bounded, whatever is printed.
func TestMuchOutput(t *testing.T) {
	k, _ := realKit(t, shell.Options{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := k.run("yes 0123456789 | head -c 30000000; echo; echo end; exit 9")
	runtime.GC()
	runtime.ReadMemStats(&after)
	if !strings.HasSuffix(got, "\nend\nexit code: 9") || len(k.kept["c1"]) != 8<<20 {
		t.Errorf("got …%s, %d bytes in the file", got[len(got)-100:], len(k.kept["c1"]))
	}
	if grown := int64(after.Sys) - int64(before.Sys); grown > 150<<20 { // the test keeps the file in memory, in growing pieces
		t.Errorf("%d MiB of memory were used", grown>>20)
	}
	if got := k.run("yes 0123456789 | head -c 80000000; echo end"); !strings.Contains(got, "which were not read.]\nexit code: 0") {
		t.Errorf("got …%s", got[len(got)-200:])
	}
}

func TestTheRunnerGoesAway(t *testing.T) {
	state := t.TempDir()
	k, server := realKit(t, shell.Options{State: state})
	k.run("mkdir a; cd a")
	k.begin("echo $$ > pid; echo written; sleep 1000", "written")
	left := t.TempDir() // a runner that is gone writes nothing more; this one goes on
	if err := os.CopyFS(left, os.DirFS(state)); err != nil {
		t.Fatal(err)
	}
	client, _ := k.box.(*sandbox.Client)
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	next := sandbox.Dial(server.Socket)
	t.Cleanup(func() { _ = next.Close() })
	k.box = next
	k.over(shell.Options{State: left})
	if diff := cmp.Diff([]string{"background command job-1 (echo $$ > pid; echo written; sleep 1000)"}, k.shells.Lost()); diff != "" {
		t.Errorf("Lost() -want +got:\n%s", diff)
	}
	if got, want := k.run("kill -0 $(cat pid) 2>/dev/null || echo gone; pwd"), "gone\n/workspace/a\nexit code: 0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheSandboxGoesAway(t *testing.T) {
	k, server := realKit(t, shell.Options{})
	k.run("mkdir a; cd a")
	k.background("sleep 1000")
	k.seen = func() { _ = syscall.Kill(server.FirstPID(), syscall.SIGKILL) }
	want := "Error: the sandbox was restarted; background jobs, interpreters and working directory are lost; this was killed with it and may have partly happened\nThe output until then:\nhi\n"
	if got := k.run("echo hi; sleep 1000"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	k.seen = func() {}
	server.Restart(t)
	if got, want := k.run("pwd"), "/workspace\nexit code: 0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := k.call(shell.NameOutput, map[string]any{"id": "job-1"}); !strings.HasSuffix(got, "killed: the sandbox was restarted; background jobs, interpreters and working directory are lost") {
		t.Errorf("got %q", got)
	}
}

// BenchmarkTrue is what a command costs beside what it does.
func BenchmarkTrue(b *testing.B) {
	client, server := sandboxtest.New(b)
	shells, err := shell.New(client, shell.Options{Program: program(b, client), Workspace: server.Workspace, State: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer shells.Close()
	sh := shells.Tools(shell.Use{})[0]
	for b.Loop() {
		got, err := sh.Call(b.Context(), tool.Call{ID: "c1", Args: []byte(`{"command":"true"}`), Emit: func(string) {}})
		if err != nil || got.Text != "(no output)\nexit code: 0" {
			b.Fatal(got, err)
		}
	}
}
