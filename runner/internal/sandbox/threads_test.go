//go:build linux

package sandbox_test

import (
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/sandboxtest"
)

// threads starts as many threads as its argument says, and waits in them.
const threads = `import sys, threading
threading.stack_size(64 << 10)
for n in range(int(sys.argv[1])):
    threading.Thread(target=threading.Event().wait).start()
print("started", flush=True)
`

// Threads take places among those that a cluster node has for processes.
func TestACommandWithTooManyThreadsIsEnded(t *testing.T) {
	s := sandboxtest.Start(t, sandboxtest.Confined(), sandboxtest.Contained(t, 20000, 1<<30))
	c := sandbox.Dial(s.Socket)
	t.Cleanup(func() { c.Close() })
	beside := begin(t, c, sh("echo on; read x; echo off"))
	says(t, beside, "on\n")
	got := run(t, c, sandbox.Command{
		Args: []string{"python3", "-c", threads, "100000"}, Limits: sandbox.Limits{Processes: 8, Timeout: time.Minute},
	})
	if got.exit.Cause != sandbox.TooManyProcesses {
		t.Errorf("%+v", got.exit)
	}
	io.WriteString(beside.Stdin(), "\n")
	if got := collect(t, beside); got.stdout != "off\n" {
		t.Errorf("another command did not live on: %+v", got)
	}
	alone(t, c, 0)
}

// A runtime has some threads for each CPU: they are no processes.
func TestACommandMayHaveMoreThreadsThanProcesses(t *testing.T) {
	c := contained(t)
	p := begin(t, c, sandbox.Command{Args: []string{"python3", "-c", threads, "400"}, Limits: sandbox.Limits{Processes: 8, Timeout: time.Minute}})
	says(t, p, "started\n")
	p.Kill()
	if got := collect(t, p); got.exit.Cause != sandbox.Canceled {
		t.Errorf("%+v", got.exit)
	}
	alone(t, c, 0)
}

// withoutFirstThread is Python whose function rest goes on after the first thread of the
// process has exited. The kernel shows such a process as one that has ended and has no memory.
const withoutFirstThread = `import ctypes, threading, time
def go():
    while open("/proc/self/stat").read().rsplit(")", 1)[1].split()[0] != "Z": time.sleep(0.001)
    rest()
threading.Thread(target=go).start()
ctypes.CDLL(None).syscall(60, 0) # exit, of this thread, on amd64
`

func TestAProcessWithoutItsFirstThreadIsEnded(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("not tried: system calls have other numbers here")
	}
	c := contained(t)
	const script = "def rest():\n  print('on', flush=True)\n  time.sleep(1000)\n" + withoutFirstThread
	p := begin(t, c, sandbox.Command{Args: []string{"bash", "-c", `setsid python3 -c "$0" & read x`, script}})
	says(t, p, "on\n")
	io.WriteString(p.Stdin(), "\n")
	if got := collect(t, p); got.exit != exited {
		t.Errorf("%+v", got)
	}
	alone(t, c, 0)
}

func TestTheMemoryOfAProcessWithoutItsFirstThreadCounts(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("not tried: system calls have other numbers here")
	}
	c := contained(t)
	beside := begin(t, c, sandbox.Command{Args: []string{"python3", "-c", "b = b'x' * (50 << 20)\nprint('on', flush=True)\ninput()\nprint('off')"}})
	says(t, beside, "on\n")
	const script = "def rest():\n  b = b''\n  while 1: b += b'x' * (20 << 20); time.sleep(0.05)\n" + withoutFirstThread
	got := run(t, c, sandbox.Command{Args: []string{"python3", "-c", script}, Limits: sandbox.Limits{Timeout: time.Minute}})
	if got.exit.Cause != sandbox.OutOfMemory {
		t.Errorf("%+v", got)
	}
	io.WriteString(beside.Stdin(), "\n")
	if got := collect(t, beside); got.stdout != "off\n" {
		t.Errorf("another command did not live on: %+v", got)
	}
}
