//go:build linux

package server

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
)

const killedStatus = syscall.WaitStatus(syscall.SIGKILL)

// fakeCommands returns commands whose sweeps record their order and return what fails.
func fakeCommands(order *[]string, fails *error) *commands {
	c := newCommands()
	c.setOpen(true)
	c.sweep = func(int, func(int) bool) error {
		*order = append(*order, "sweep")
		return *fails
	}
	return c
}

// unconnected returns a connection whose peer has gone.
func unconnected() *frame.Conn {
	near, far := net.Pipe()
	_ = far.Close()
	return frame.New(near)
}

// begin adds a command with a supervisor.
func begin(c *commands, pid int, order *[]string) error {
	one := &command{server: unconnected(), ended: make(chan struct{})}
	return c.add(one, func() (int, error) {
		*order = append(*order, "launch")
		return pid, nil
	})
}

func TestWhatAKilledSupervisorLeftEndsBeforeTheNextCommandStarts(t *testing.T) {
	for name, tc := range map[string]struct {
		status syscall.WaitStatus
		want   []string
	}{
		"a supervisor that was killed":            {killedStatus, []string{"launch", "sweep", "launch", "launch"}},
		"a supervisor that could start no thread": {2 << 8, []string{"launch", "sweep", "launch", "launch"}},
		"a supervisor that ended with its runner": {1 << 8, []string{"launch", "launch", "launch"}},
		"a supervisor that reported the exit":     {0, []string{"launch", "launch", "launch"}},
	} {
		t.Run(name, func(t *testing.T) {
			var order []string
			var fails error
			c := fakeCommands(&order, &fails)
			for pid := 10; pid < 13; pid++ {
				if err := begin(c, pid, &order); err != nil {
					t.Fatal(err)
				}
				if pid == 10 {
					c.removeEnded(10, tc.status)
				}
			}
			if diff := cmp.Diff(tc.want, order); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestNoCommandStartsWhileProcessesAreLeft(t *testing.T) {
	var order []string
	fails := error(syscall.ENOMEM)
	c := fakeCommands(&order, &fails)
	c.suspectOrphans() // as the watch, when it cannot read the process table
	err := begin(c, 10, &order)
	refused, ok := errors.AsType[*sandbox.RefusedError](err)
	if !ok || !strings.Contains(refused.Error(), "processes of ended commands") || !strings.Contains(refused.Error(), "cannot allocate memory") {
		t.Errorf("with processes left: %v", err)
	}
	fails = nil
	if err := begin(c, 10, &order); err != nil {
		t.Errorf("after a sweep: %v", err)
	}
	if diff := cmp.Diff([]string{"sweep", "sweep", "launch"}, order); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheServerEndsWhenItLosesControl(t *testing.T) {
	for name, tc := range map[string]struct {
		run  func(c *commands, fails *error)
		want sandbox.Ending // zero: it goes on
	}{
		"when one supervisor after the other is killed": {func(c *commands, _ *error) {
			ended(c, maxLost+1, killedStatus)
		}, sandbox.SupervisorsKilled},
		"not when as many end in order": {func(c *commands, _ *error) {
			for range 3 * maxLost {
				ended(c, 1, killedStatus)
				ended(c, 1, 0)
			}
		}, 0},
		"not before": {func(c *commands, _ *error) { ended(c, maxLost, killedStatus) }, 0},
		"not when it kills them at the end of a session": {func(c *commands, _ *error) {
			c.setOpen(false)
			ended(c, 2*maxLost, killedStatus)
			c.setOpen(true)
			ended(c, maxLost, killedStatus)
		}, 0},
		"when nothing kills what is left": {func(c *commands, fails *error) {
			*fails = syscall.EMFILE
			for range maxFailedSweeps {
				c.killOrphans()
			}
		}, sandbox.ProcessesLeft},
		"not when a sweep succeeds in between": {func(c *commands, fails *error) {
			for range maxFailedSweeps {
				*fails = syscall.EMFILE
				c.killOrphans()
				*fails = nil
				c.killCommand(&command{pid: 10})
			}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var order []string
			var fails error
			c := fakeCommands(&order, &fails)
			tc.run(c, &fails)
			var got sandbox.Ending
			select {
			case got = <-c.failed:
			default:
			}
			if got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}

// ended starts commands whose supervisors end with a status.
func ended(c *commands, n int, status syscall.WaitStatus) {
	for range n {
		c.running[10] = &command{server: unconnected(), ended: make(chan struct{})}
		c.removeEnded(10, status)
	}
}

// A process table that cannot be read says nothing about what is left of commands.
func TestTheServerEndsWhenItCannotReadTheProcessTable(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) }()
	var order []string
	fails := error(syscall.EMFILE)
	c := fakeCommands(&order, &fails)
	w := &watch{commands: c, sessions: &sessions{commands: c}}
	check := func(files uint64, times int) {
		limit := syscall.Rlimit{Cur: files, Max: before.Max}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		for range times {
			w.check(0)
		}
	}
	check(0, maxUnreadable-1)
	if !c.unswept {
		t.Error("the next command would start without a sweep")
	}
	check(before.Cur, 1) // and it counts from the beginning
	check(0, maxUnreadable-1)
	if len(c.failed) > 0 {
		t.Fatal("the server ends too early")
	}
	check(0, 1)
	if len(c.failed) == 0 || <-c.failed != sandbox.ProcessesUnknown {
		t.Error("the server goes on")
	}
}
