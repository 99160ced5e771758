//go:build linux

package sandbox_test

import (
	"errors"
	"fmt"
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

// swarm is comets that become more until none can be started, and go on if it cannot. What
// started them sends signals to its supervisor, or exits without any.
const swarm = `import os, sys, time
print("on", flush=True)
sys.stdin.readline()
if os.fork() == 0:
    while 1:
        try:
            if os.fork() and os.fork(): os._exit(0)
            os.setsid()
        except OSError: pass
time.sleep(0.3)
for signal in sys.argv[1:]:
    os.kill(os.getppid(), int(signal))
`

// Processes that fork, leave their session and exit all the time use what processes and
// memory the sandbox may have, with other work in it. In some rounds they kill or stop
// their supervisor too, so that they are processes of no command.
func TestASwarmOfCometsLosesOnlyItsOwnCommand(t *testing.T) {
	s := sandboxtest.Start(t, sandboxtest.Confined(), sandboxtest.Contained(t, 400, 192<<20))
	c := sandbox.Dial(s.Socket)
	t.Cleanup(func() { c.Close() })
	alone(t, c, 0)
	beside := begin(t, c, sh("while read x; do echo $x; done"))
	load := begin(t, c, sh("while :; do :; done & while :; do :; done & echo on; while :; do :; done"))
	says(t, load, "on\n")
	for name, signals := range map[string][]string{
		"left by a command that exits":        nil,
		"left by a supervisor that is killed": {"9"},
		"left by one that was stopped before": {"19", "9"},
	} {
		t.Run(name, func(t *testing.T) {
			p := begin(t, c, sandbox.Command{
				Args: append([]string{"python3", "-c", swarm}, signals...), Limits: sandbox.Limits{Timeout: time.Minute},
			})
			says(t, p, "on\n")
			io.WriteString(p.Stdin(), "\n")
			ran := 0
			for n := range 3 {
				want := fmt.Sprintf("%d\n", n)
				io.WriteString(beside.Stdin(), want)
				says(t, beside, want)
				if nextOrWhyNot(t, c) {
					ran++
				}
			}
			if ran == 0 { // the watch ends enough of the swarm while the launch is repeated
				t.Error("no command could run beside it")
			}
			got := collect(t, p)
			if got.exit.Cause == sandbox.TimedOut || got.exit.Cause == sandbox.SandboxLost {
				t.Errorf("%+v", got.exit)
			}
			alone(t, c, 6) // the two other commands with their processes and supervisors
		})
	}
	load.Kill()
	collect(t, load)
	beside.Stdin().Close()
	if got := collect(t, beside); got.exit != exited {
		t.Errorf("another command did not live on: %+v", got)
	}
	alone(t, c, 0)
}

// nextOrWhyNot starts a command. It reports whether the command ran: otherwise no process was left
// for its supervisor, or for a thread of that.
func nextOrWhyNot(t *testing.T, c *sandbox.Client) (ran bool) {
	t.Helper()
	next, err := c.Start(t.Context(), sh("echo next"))
	refused, isRefused := errors.AsType[*sandbox.RefusedError](err)
	lost, isLost := errors.AsType[*sandbox.LostError](err)
	switch {
	case isRefused && refused.Reason == sandbox.Failed && strings.Contains(refused.Subject, "allows no more processes"):
		return false
	case isLost && strings.Contains(lost.Detail, "no more processes were allowed"):
		return false
	case err != nil:
		t.Errorf("the next command was not started: %v", err)
		return false
	}
	if got := collect(t, next); got.stdout != "next\n" || got.exit != exited {
		t.Errorf("the next command ended with %+v", got)
	}
	return true
}

// A process that has ended takes a place in the process table until its parent waits
// for it.
func TestEndedProcessesCountUntilTheirParentWaits(t *testing.T) {
	c := contained(t)
	const zombies = "import os, time\nwhile 1:\n  try:\n    if os.fork() == 0: os._exit(0)\n  except OSError: time.sleep(0.01)"
	got := run(t, c, sandbox.Command{Args: []string{"python3", "-c", zombies}, Limits: sandbox.Limits{Processes: 64, Timeout: time.Minute}})
	if got.exit.Cause != sandbox.TooManyProcesses {
		t.Errorf("%+v", got.exit)
	}
	alone(t, c, 0)
}

// A sandbox whose supervisors are killed all the time can run nothing. It ends, so that
// the kernel kills all of its processes, and the runner learns why.
func TestASandboxThatLosesItsSupervisorsEndsAndSaysWhy(t *testing.T) {
	s := sandboxtest.Start(t, sandboxtest.Confined(), sandboxtest.Contained(t, 400, 512<<20))
	c := sandbox.Dial(s.Socket)
	t.Cleanup(func() { c.Close() })
	p := begin(t, c, sh("echo on; while :; do sleep 1; done"))
	says(t, p, "on\n")
	for range 30 {
		killer, err := c.Start(t.Context(), sh("sleep 0.2; kill -KILL $PPID"))
		if err != nil {
			break
		}
		go func() {
			for range killer.Output() {
			}
		}()
	}
	defer time.AfterFunc(time.Minute, func() { p.Kill() }).Stop()
	for range p.Output() {
	}
	got, err := p.Wait(t.Context())
	const why = "its processes killed the supervisors of commands again and again"
	if err != nil || got.Cause != sandbox.SandboxLost || !strings.Contains(got.Detail, why) {
		t.Errorf("%+v, %v", got, err)
	}
	if log := s.WaitEnded(t); !strings.Contains(log, why) {
		t.Errorf("the log says %q", log)
	}
	s.Restart(t)
	if got := run(t, c, sh("echo again")); got.stdout != "again\n" {
		t.Errorf("%+v", got)
	}
}

func TestWhoKillsEverythingKillsOnlyCommands(t *testing.T) {
	c := contained(t)
	alone(t, c, 0)
	released(t, c, "kill -STOP -1; kill -KILL -1") // its supervisor as well, and those of others
	if got := run(t, c, sh("echo again")); got.stdout != "again\n" {
		t.Errorf("%+v", got)
	}
	if got := released(t, c, "kill -STOP $PPID; echo on"); got.stdout != "on\n" || got.exit != exited {
		t.Errorf("who stopped its supervisor once ended with %+v", got)
	}
	if got := released(t, c, "while :; do kill -STOP $PPID; done"); got.exit.Signal != "SIGKILL" {
		t.Errorf("who stopped its supervisor all the time ended with %+v", got)
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
