//go:build linux

package sandbox_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
)

// Numbers of system calls on amd64 that Python has no function for.
const (
	setScheduler = "144"
	setParam     = "142"
	setAttr      = "314"
	setIOPrio    = "251"
	movePages    = "279"
	migratePages = "256"
)

// The kernel lets processes of one user change each other's limits, priority and
// processors: with a limit of no open files the sandbox could accept nothing.
func TestCommandsCannotChangeTheResourcesOfOtherProcesses(t *testing.T) {
	c, s := confined(t)
	needs(t, c, 6)
	other := begin(t, c, sh("echo $$; exec sleep 1000"))
	command := strings.TrimSpace(string((<-other.Output()).Data))
	server := fmt.Sprint(s.Process.Pid)
	attr := `struct.pack("IIQiIQQQ", 48, 5, 0, 0, 0, 0, 0, 0)`
	for name, line := range map[string]string{
		"its open files":              "resource.prlimit(PID, resource.RLIMIT_NOFILE, (0, 0))",
		"its processor time":          "resource.prlimit(PID, resource.RLIMIT_CPU, (1, 1))",
		"its memory":                  "resource.prlimit(PID, resource.RLIMIT_AS, (1 << 20, 1 << 20))",
		"its priority":                "os.setpriority(os.PRIO_PROCESS, PID, 19)",
		"the priority of its group":   "os.setpriority(os.PRIO_PGRP, PID, 19)",
		"the priority of all":         "os.setpriority(os.PRIO_USER, os.getuid(), 19)",
		"the priority of the user":    "os.setpriority(os.PRIO_USER, 0, 19)",
		"its processors":              "os.sched_setaffinity(PID, {0})",
		"its scheduling":              "call(" + setScheduler + ", PID, 5, ctypes.byref(ctypes.c_int(0)))",
		"its parameters":              "call(" + setParam + ", PID, ctypes.byref(ctypes.c_int(0)))",
		"its scheduling, extended":    "call(" + setAttr + ", PID, " + attr + ", 0)",
		"its priority on the disk":    "call(" + setIOPrio + ", 1, PID, 3 << 13)",
		"the same, of the user":       "call(" + setIOPrio + ", 3, os.getuid(), 3 << 13)",
		"where its memory is":         "call(" + migratePages + ", PID, 0, None, None)",
		"where pages of it are":       "call(" + movePages + ", PID, 0, None, None, None, 0)",
		"how likely it is ended":      "os.write(os.open('/proc/PID/oom_score_adj', os.O_WRONLY), b'1000')",
		"how its timers are rounded":  "os.write(os.open('/proc/PID/timerslack_ns', os.O_WRONLY), b'1000000000')",
		"the priority of its session": "os.write(os.open('/proc/PID/autogroup', os.O_WRONLY), b'19')",
	} {
		t.Run(name, func(t *testing.T) {
			for who, pid := range map[string]string{"the server": server, "another command": command} {
				if who != "the server" && strings.Contains(line, "/proc/") {
					continue // between commands the files of /proc are as in any container
				}
				if got := try(t, c, strings.ReplaceAll(line, "PID", pid)); got != "EPERM" && got != "EACCES" {
					t.Errorf("of %s: %s", who, got)
				}
			}
		})
	}
	if got := run(t, c, sh("echo again")); got.stdout != "again\n" {
		t.Errorf("after all that: %+v", got)
	}
}

// Ordinary programs and runtimes change their own limits, priority and
// processors, and read those of others.
func TestCommandsChangeTheirOwnResources(t *testing.T) {
	c, s := confined(t)
	needs(t, c, 0)
	for name, line := range map[string]string{
		"its open files":              "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))",
		"the same by prlimit":         "resource.prlimit(0, resource.RLIMIT_NOFILE, (64, 64))",
		"its priority":                "os.nice(1)",
		"the same by number":          "os.setpriority(os.PRIO_PROCESS, 0, 19)",
		"that of its group":           "os.setpriority(os.PRIO_PGRP, 0, 19)",
		"its processors":              "os.sched_setaffinity(0, os.sched_getaffinity(0))",
		"its scheduling":              "os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))",
		"its parameters":              "os.sched_setparam(0, os.sched_param(0))",
		"reading others":              fmt.Sprintf("[resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE), os.getpriority(os.PRIO_PROCESS, %[1]d), os.sched_getaffinity(%[1]d)]", s.Process.Pid),
		"threads":                     "[t := threading.Thread(target=print), t.start(), t.join()] and None",
		"its standard output by path": "os.write(os.open('/proc/self/fd/1', os.O_WRONLY), b'')",
		"a file in memory by path":    "os.write(os.open('/proc/self/fd/%d' % os.memfd_create('x'), os.O_WRONLY), b'x')",
	} {
		t.Run(name, func(t *testing.T) {
			if got := try(t, c, line); got != "ok" {
				t.Errorf("%s: %s", line, got)
			}
		})
	}
	for _, line := range []string{
		"nice -n 5 true", "ulimit -n 64", "taskset -c 0 true", "taskset 1 true", "ionice -c 3 true", "ionice -c 2 -n 7 true",
		"chrt --batch 0 true", "prlimit --nofile=64 true", "prlimit --pid $$ >/dev/null", "timeout 10 true", "setsid true", "nohup true",
	} {
		program, _, _ := strings.Cut(line, " ")
		got := run(t, c, sh("command -v "+program+" >/dev/null || exit 0; "+line))
		if got.exit != exited {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// When the memory of a sandbox is used up, the kernel kills a command. Without its
// supervisor a command would be lost, and without the server all would be.
func TestTheKernelKillsCommandsBeforeSupervisorsAndTheServer(t *testing.T) {
	c, s := confined(t)
	needs(t, c, 1)
	own := score(t, s.Process.Pid)
	p := begin(t, c, sh("echo $$ $PPID; read x; (setsid cat /proc/self/oom_score_adj); for n in 0 -1000 1000; do echo $n 2>/dev/null >/proc/self/oom_score_adj && echo changed; done; exit 0"))
	var command, supervisor int
	if _, err := fmt.Sscan(string((<-p.Output()).Data), &command, &supervisor); err != nil {
		t.Fatal(err)
	}
	want := min(own+100, 1000)
	if got := score(t, command); got != want {
		t.Errorf("the command has score %d, want %d", got, want)
	}
	deadline := time.Now().Add(10 * time.Second)
	for score(t, supervisor) != own {
		if time.Now().After(deadline) {
			t.Fatalf("the supervisor has score %d, want %d", score(t, supervisor), own)
		}
	}
	io.WriteString(p.Stdin(), "\n")
	if got := collect(t, p); got.stdout != fmt.Sprintln(want) || got.exit != exited {
		t.Errorf("%+v", got)
	}
}

// score reads the oom_score_adj of a process.
func score(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A server that cannot accept any more is of no use, and does not know whether it
// ever will be: it ends, so that its container is started again.
func TestASandboxThatCannotAcceptEndsAndStartsAgain(t *testing.T) {
	c, s := confined(t)
	if got := run(t, c, sh("echo before")); got.stdout != "before\n" {
		t.Fatalf("%+v", got)
	}
	limit := exec.CommandContext(t.Context(), "prlimit", "--pid", fmt.Sprint(s.FirstPID()), "--nofile=0:0")
	limit.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532}} // as one of its own user could
	if out, err := limit.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p, err := c.Start(t.Context(), sh("echo lost"))
	if err == nil {
		collect(t, p)
	}
	if log := s.WaitEnded(t); !strings.Contains(log, "too many open files") || !strings.Contains(log, "ends so that") {
		t.Errorf("the log says %q", log)
	}
	s.Restart(t)
	again := sandbox.Dial(s.Socket)
	defer again.Close()
	if got := run(t, again, sh("echo again")); got.stdout != "again\n" {
		t.Errorf("%+v", got)
	}
}
