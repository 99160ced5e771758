//go:build linux

package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/proc"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/sandboxtest"
)

// mark makes a word unique to this test process: others may run on this machine.
func mark(word string) string { return fmt.Sprintf("%s-%d-", word, os.Getpid()) }

// marked are the processes of this machine with a word in their arguments.
func marked(t *testing.T, word string) []int {
	t.Helper()
	word = mark(word)
	dirs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var all []int
	for _, file := range dirs {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), word) {
			continue
		}
		id, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		all = append(all, id)
	}
	return all
}

// gone fails unless processes with a word in their arguments are gone soon.
func gone(t *testing.T, word string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for len(marked(t, word)) > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("there are still processes: %v", marked(t, word))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// stubborn is a script whose processes ignore every polite signal, leave their
// group and session, and hold the pipes; each has the word in its arguments.
func stubborn(word string) string {
	word = mark(word)
	sleeper := `trap "" TERM HUP INT; while :; do sleep 1000; done # ` + word
	return `trap "" TERM HUP INT; setsid sh -c '` + sleeper + `' & (setsid sh -c '` + sleeper + `' &); echo on; while :; do sleep 1000; done # ` + word
}

func TestEverythingOfACommandEnds(t *testing.T) {
	c, _ := sandboxtest.New(t)
	for name, tc := range map[string]struct {
		word string
		end  func(p sandbox.Process, cancel context.CancelFunc)
	}{
		"when it is killed":       {"kXlled1", func(p sandbox.Process, _ context.CancelFunc) { p.Kill() }},
		"when the context ends":   {"kXlled2", func(_ sandbox.Process, cancel context.CancelFunc) { cancel() }},
		"when it is killed twice": {"kXlled3", func(p sandbox.Process, cancel context.CancelFunc) { p.Kill(); p.Kill(); cancel() }},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p, err := c.Start(ctx, sh(stubborn(tc.word)))
			if err != nil {
				t.Fatal(err)
			}
			says(t, p, "on\n")
			tc.end(p, cancel)
			want := sandbox.Exit{Code: -1, Signal: "SIGKILL", Cause: sandbox.Canceled}
			if diff := cmp.Diff(want, collect(t, p).exit); diff != "" {
				t.Errorf("exit -want +got:\n%s", diff)
			}
			if left := marked(t, tc.word); len(left) > 0 {
				t.Errorf("after its end there are %v", left)
			}
		})
	}
}

func TestOutputWithoutEndIsReadAndDropped(t *testing.T) {
	c, s := sandboxtest.New(t)
	const limit, all = 100_000, 1 << 30
	got := run(t, c, limited("head -c 1073741824 /dev/zero", sandbox.Limits{Output: limit}))
	want := sandbox.Exit{Cause: sandbox.Exited, Dropped: all - limit}
	if diff := cmp.Diff(want, got.exit); diff != "" || len(got.stdout) != limit {
		t.Errorf("%d bytes, exit -want +got:\n%s", len(got.stdout), diff)
	}
	if used := resident(t, s.Process.Pid); used > 64<<20 {
		t.Errorf("the server uses %d bytes", used)
	}
}

func resident(t *testing.T, pid int) int64 {
	t.Helper()
	table, err := proc.ReadTable()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range table.Children(os.Getpid()) {
		if p.ID == pid {
			return p.Memory
		}
	}
	t.Fatal("it is gone")
	return 0
}

func TestWhoTakesNoOutputHoldsOnlyItsOwnProgramUp(t *testing.T) {
	c, _ := sandboxtest.New(t)
	p := begin(t, c, sandbox.Command{Args: []string{"yes", mark("held-Xup")}})
	if got := run(t, c, sh("echo free")); got.stdout != "free\n" {
		t.Errorf("%+v", got)
	}
	p.Kill()
	if got := ended(t, p); got.Cause != sandbox.Canceled {
		t.Errorf("%+v", got)
	}
	gone(t, "held-Xup")
}

func TestTheEndOfTheRunnerEndsEverythingAndIsReportedToTheNext(t *testing.T) {
	s := sandboxtest.Start(t)
	first := sandbox.Dial(s.Socket)
	call := sh(stubborn("rXnner"))
	call.ID = "call-7"
	p := begin(t, first, call)
	says(t, p, "on\n")
	quick := begin(t, first, sh("true"))
	collect(t, quick)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	next := sandbox.Dial(s.Socket)
	defer next.Close()
	d, err := next.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]sandbox.Killed{{ID: "call-7", Args0: "sh"}}, d.Killed); diff != "" {
		t.Errorf("killed -want +got:\n%s", diff)
	}
	if left := marked(t, "rXnner"); len(left) > 0 {
		t.Errorf("%v are left when the next runner is there", left)
	}
	if got := ended(t, p); got.Cause != sandbox.SandboxLost {
		t.Errorf("%+v", got)
	}
	if _, err := first.Start(t.Context(), sh("true")); err == nil {
		t.Error("a closed client started something")
	}
	if got := run(t, next, sh("echo again")); got.stdout != "again\n" {
		t.Errorf("%+v", got)
	}
}

func TestASecondRunnerTakesOver(t *testing.T) {
	s := sandboxtest.Start(t)
	first, second := sandbox.Dial(s.Socket), sandbox.Dial(s.Socket)
	defer first.Close()
	defer second.Close()
	p := begin(t, first, sh(stubborn("twX")))
	says(t, p, "on\n")
	d, err := second.Describe(t.Context())
	if err != nil || len(d.Killed) != 1 {
		t.Errorf("Describe: %+v, %v", d, err)
	}
	if left := marked(t, "twX"); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

func TestASandboxThatIsRestarted(t *testing.T) {
	s := sandboxtest.Start(t)
	c := sandbox.Dial(s.Socket)
	defer c.Close()
	p := begin(t, c, sh(stubborn("lXst")))
	says(t, p, "on\n")
	if err := s.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range p.Output() {
	}
	got, err := p.Wait(t.Context())
	if err != nil || got.Cause != sandbox.SandboxLost ||
		got.Detail != "the sandbox was restarted; background jobs, interpreters and working directory are lost" {
		t.Errorf("Wait: %+v, %v", got, err)
	}
	gone(t, "lXst") // in a pod the kernel does it; here the supervisor
	began := make(chan outcome)
	go func() { began <- run(t, c, sh("echo back")) }() // finds no sandbox at first
	s.Restart(t)                                        // in place of the socket that was left
	if got := <-began; got.stdout != "back\n" {
		t.Errorf("after the restart: %+v", got)
	}
}

func TestASandboxThatIsNotThere(t *testing.T) {
	c := sandbox.Dial("/nonexistent/exec.sock")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Start(ctx, sh("true")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Start: %v", err)
	}
}

func TestSIGTERMEndsEverything(t *testing.T) {
	s := sandboxtest.Start(t)
	c := sandbox.Dial(s.Socket)
	defer c.Close()
	p := begin(t, c, sh(stubborn("tXrm")))
	says(t, p, "on\n")
	s.Terminate(t)
	if left := marked(t, "tXrm"); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	if got := collect(t, p); got.exit.Cause != sandbox.SandboxLost {
		t.Errorf("%+v", got)
	}
}
