//go:build linux

package sandbox_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/sandboxtest"
)

// contained starts a sandbox that is confined and the first process of a
// container of its own.
func contained(t *testing.T) *sandbox.Client {
	t.Helper()
	s := sandboxtest.Start(t, sandboxtest.Confined(), sandboxtest.Contained(t, 1000, 512<<20))
	c := sandbox.Dial(s.Socket)
	t.Cleanup(func() { c.Close() })
	return c
}

// alone waits until a container has only its first process, besides the command
// that asks, its supervisor and some others.
func alone(t *testing.T, c *sandbox.Client, others int) {
	t.Helper()
	want := others + 3 // the first, a supervisor, and ls in place of the shell
	deadline := time.Now().Add(10 * time.Second)
	for {
		got := strings.Count(run(t, c, sh("ls -d /proc/[0-9]*")).stdout, "\n")
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("there are %d processes, not %d", got, want)
		}
	}
}

func TestAForkBombIsEnded(t *testing.T) {
	c := contained(t)
	alone(t, c, 0)
	// Where no process can be started any more, a shell exits. The bombs here do not
	// end for that before they are counted: what has forked becomes a sleep.
	const nested = `setsid sh -c "$0" "$0" & setsid sh -c "$0" "$0" & exec sleep 1000`
	beside := begin(t, c, sh("echo on; read x; echo off"))
	says(t, beside, "on\n")
	for name, args := range map[string][]string{
		"in its group":           {"sh", "-c", "f() { f | f & exec sleep 1000; }; f & exec sleep 1000"},
		"each in its own":        {"sh", "-c", nested, nested},
		"whose parents are gone": {"sh", "-c", "for i in $(seq 300); do (setsid sleep 1000 &); done; exec sleep 1000"},
		"in python, with vfork": {
			"python3", "-c", "import subprocess\nwhile 1:\n  try: subprocess.Popen(['sleep', '1000'], start_new_session=True)\n  except OSError: pass",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, c, sandbox.Command{Args: args, Limits: sandbox.Limits{Processes: 64, Timeout: time.Minute}})
			if got.exit.Cause != sandbox.TooManyProcesses {
				t.Errorf("%+v", got.exit)
			}
		})
	}
	io.WriteString(beside.Stdin(), "\n")
	if got := collect(t, beside); got.stdout != "off\n" {
		t.Errorf("another command did not live on: %+v", got)
	}
	alone(t, c, 0)
}

// A comet is one process at a time, which has forked and ended before anybody
// can look at it, and leaves its session each time.
const comet = `import os
print("on", flush=True)
while 1:
    if os.fork(): os._exit(0)
    os.setsid()
`

func TestACometIsEnded(t *testing.T) {
	c := contained(t)
	alone(t, c, 0)
	p := begin(t, c, sh("python3 -c '"+comet+"' & read end"))
	says(t, p, "on\n")
	io.WriteString(p.Stdin(), "\n")
	if got := collect(t, p); got.stdout != "" || got.exit.Cause != sandbox.Exited {
		t.Errorf("%+v", got)
	}
	alone(t, c, 0)
}

func TestWhoKillsEverythingKillsOnlyCommands(t *testing.T) {
	c := contained(t)
	alone(t, c, 0)
	released(t, c, "kill -STOP -1; kill -KILL -1") // its supervisor as well, and those of others
	if got := run(t, c, sh("echo again")); got.stdout != "again\n" {
		t.Errorf("%+v", got)
	}
	if got := released(t, c, "kill -STOP $PPID; sleep 1000"); got.exit.Signal != "SIGKILL" {
		t.Errorf("who stopped its supervisor ended with %+v", got)
	}
	released(t, c, "(setsid sh -c 'kill -KILL $1; sleep 1000' sh $PPID &) ; sleep 1000")
	alone(t, c, 0)
}

func TestWhoUsesUpTheMemoryEndsBeforeTheSandboxDoes(t *testing.T) {
	c := contained(t)
	beside := begin(t, c, sh("echo on; read x; echo off"))
	says(t, beside, "on\n")
	for name, step := range map[string]string{"slowly": "20; time.sleep(0.05)", "in one go": "1; b = b'x' * (1 << 30)"} {
		t.Run(name, func(t *testing.T) {
			script := "import time\nb = b''\nwhile 1: b += b'x' * (1 << 20) * " + step
			got := run(t, c, sandbox.Command{Args: []string{"python3", "-c", script}, Limits: sandbox.Limits{Timeout: time.Minute}})
			if got.exit.Cause != sandbox.OutOfMemory {
				t.Errorf("%+v", got)
			}
		})
	}
	io.WriteString(beside.Stdin(), "\n")
	if got := collect(t, beside); got.stdout != "off\n" {
		t.Errorf("another command did not live on: %+v", got)
	}
}

func TestTheFirstProcessLeavesAtOnce(t *testing.T) {
	s := sandboxtest.Start(t, sandboxtest.Confined(), sandboxtest.Contained(t, 1000, 512<<20))
	c := sandbox.Dial(s.Socket)
	defer c.Close()
	p := begin(t, c, sh(stubborn("fXrst")))
	says(t, p, "on\n")
	s.Terminate(t)
	if left := marked(t, "fXrst"); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	if got := collect(t, p); got.exit.Cause != sandbox.SandboxLost {
		t.Errorf("%+v", got)
	}
}
