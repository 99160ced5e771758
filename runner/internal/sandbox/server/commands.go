//go:build linux

package server

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/confine"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/proc"
)

// maxCommands bounds the commands that run at once.
const maxCommands = 64

// Bounds after which the server ends itself, with which the kernel kills all processes
// of its container.
const (
	// maxLost is how many more supervisors may be killed than end regularly.
	maxLost = 16
	// maxFailedSweeps is how many sweeps may fail in a row. Each takes some seconds.
	maxFailedSweeps = 3
)

// endTimeout is how long a supervisor has to end its command after its connection
// was closed.
const endTimeout = 3 * time.Second

// A command is a running command, or the probe.
type command struct {
	sandbox.Killed
	pid       int         // of the supervisor
	server    *frame.Conn // the connection to the supervisor; nil for the probe
	score     oomScore    // of the supervisor
	processes int
	stopSent  bool // only the watch uses it
	ended     chan struct{}
	killed    bool // it did not exit by itself; set before ended is closed
}

// sendStop requests a supervisor to end its command, once.
func (c *command) sendStop(why sandbox.Cause) {
	if c.server == nil || c.stopSent {
		return
	}
	c.stopSent = true
	_ = c.server.SetWriteDeadline(clock.Now().Add(time.Second)) // fails only on a connection that fails anyway
	_ = c.server.Send(frame.Kill, []byte(why))                  // a supervisor that ended is removed anyway
}

// serveSupervisor handles the frames of a supervisor: that it has started its command,
// to kill a command that forks faster than the supervisor can kill, and why the command
// was killed. If the
// server killed it, sendStop has sent the cause before this answer.
func (c *command) serveSupervisor(all *commands) {
	defer c.score.restore() // which closes it
	for {
		f, err := c.server.Receive()
		switch {
		case err == nil && f.Kind == frame.Started:
			c.score.restore()
		case err == nil && f.Kind == frame.Kill:
			all.killCommand(c)
		case err == nil && f.Kind == frame.AskCause:
			_ = c.server.Send(frame.Kill, []byte(sandbox.Exited)) // a supervisor that ended needs no answer
		default:
			return
		}
	}
}

// disconnect closes the connection to a supervisor, which then ends its command.
func (c *command) disconnect() {
	if c.server != nil {
		_ = c.server.Close() // may be closed already
	}
}

// commands are the running commands.
type commands struct {
	mu      sync.Mutex
	open    bool // there is a session
	running map[int]*command
	wake    chan struct{}       // signals the watch that a command runs
	failed  chan sandbox.Ending // receives why the server has to end, once
	sweep   func(id int, spare func(id int) bool) error

	unswept      bool // there may be processes without a supervisor
	failedSweeps int  // in a row
	lost         int  // supervisors that were killed, less those that ended in order since
}

func newCommands() *commands {
	return &commands{
		running: map[int]*command{}, wake: make(chan struct{}, 1),
		failed: make(chan sandbox.Ending, 1), sweep: proc.Sweep,
	}
}

// fail makes the server end.
func (c *commands) fail(why sandbox.Ending) {
	select {
	case c.failed <- why:
	default: // it ends already
	}
}

// add starts a supervisor and records it, atomically. Processes of commands that ended
// without their supervisors are killed first.
func (c *commands) add(one *command, launch func() (int, error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one.server != nil && !c.open {
		return &sandbox.RefusedError{Reason: sandbox.Failed, Subject: "no runner has opened a session"}
	}
	if len(c.running) >= maxCommands {
		return &sandbox.RefusedError{Reason: sandbox.Busy, Subject: "64"}
	}
	if c.unswept {
		if err := c.sweepOrphans(); err != nil {
			return &sandbox.RefusedError{
				Reason: sandbox.Failed, Subject: fmt.Sprintf("processes of ended commands are still there: %v. Try again later", err),
			}
		}
	}
	pid, err := launch()
	if err != nil {
		return err
	}
	one.pid = pid
	c.running[pid] = one
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

// isSupervisor reports whether a process is a supervisor.
func (c *commands) isSupervisor(pid int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running[pid] != nil
}

// all returns the running commands.
func (c *commands) all() []*command {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*command, 0, len(c.running))
	for _, one := range c.running {
		list = append(list, one)
	}
	return list
}

// setOpen sets whether commands may be started.
func (c *commands) setOpen(open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = open
	c.lost = 0 // a new session begins without losses
}

// reap waits for children that ended, after each SIGCHLD.
func (c *commands) reap(ended <-chan os.Signal) {
	for range ended {
		c.mu.Lock()
		c.reapEnded()
		c.mu.Unlock()
	}
}

// reapEnded waits for the children that have ended: until then they take a place among
// the processes that the container may have.
func (c *commands) reapEnded() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err != nil || pid <= 0 {
			return
		}
		c.removeEnded(pid, status)
	}
}

// removeEnded removes a supervisor that ended. Its exit status is 0 if it has
// reported the exit of its command to the runner.
func (c *commands) removeEnded(pid int, status syscall.WaitStatus) {
	one := c.running[pid]
	if one == nil {
		return // an adopted process
	}
	delete(c.running, pid)
	one.disconnect()
	one.killed = one.server != nil && status != 0
	close(one.ended)
	c.countLost(status)
}

// countLost counts killed supervisors. Commands that end regularly reduce the count, so that only a sandbox that loses
// most of its commands ends.
func (c *commands) countLost(status syscall.WaitStatus) {
	switch {
	case status.Signaled():
		c.unswept = true
		c.lost++
	case status.ExitStatus() > 1:
		c.unswept = true // it failed, for example because it could create no thread
	default:
		c.lost = max(c.lost-1, 0)
	}
	if c.lost > maxLost && c.open {
		c.fail(sandbox.SupervisorsKilled)
	}
}

// endAll ends all commands and returns the commands that had not exited. Supervisors end them; after a while the server
// kills the rest.
func (c *commands) endAll(within time.Duration) []sandbox.Killed {
	list := c.all()
	for _, one := range list {
		one.disconnect()
	}
	late := time.AfterFunc(within, func() { c.killBelow(os.Getpid()) })
	defer late.Stop()
	var killed []sandbox.Killed
	for _, one := range list {
		<-one.ended
		if one.killed {
			killed = append(killed, one.Killed)
		}
	}
	c.killOrphans() // whose supervisors ended first
	return killed
}

// killCommand kills all processes of one command.
func (c *commands) killCommand(one *command) { c.killBelow(one.pid) }

// killOrphans kills all processes that have no supervisor. If it cannot, no command is
// accepted until it can.
func (c *commands) killOrphans() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.sweepOrphans() // add reports it
}

func (c *commands) sweepOrphans() error {
	c.reapEnded() // first, because what a supervisor that ended has left is to be swept
	err := c.sweepBelow(os.Getpid(), func(pid int) bool { return c.running[pid] != nil })
	c.unswept = err != nil
	c.reapEnded()
	return err
}

// sweepBelow sweeps and counts failures.
func (c *commands) sweepBelow(pid int, spare func(int) bool) error {
	err := c.sweep(pid, spare)
	if err == nil {
		c.failedSweeps = 0
		return nil
	}
	if c.failedSweeps++; c.failedSweeps >= maxFailedSweeps {
		c.fail(sandbox.ProcessesLeft)
	}
	return err
}

// suspectOrphans makes add look for processes without a supervisor.
func (c *commands) suspectOrphans() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unswept = true
}

// killBelow sweeps while no supervisor is being started: a process that is stopped
// between fork and exec would block the launcher.
func (c *commands) killBelow(pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.sweepBelow(pid, nil) // it is counted, and the caller repeats it while processes are left
}

// A launcher starts processes from a thread that has confined itself. They are all
// in its Landlock domain, so commands may signal one another, but not the server.
type launcher struct {
	work    chan func()
	applied confine.Applied
}

// newLauncher starts the thread and confines it; nil: no confinement.
func newLauncher(confineThread func() confine.Applied) *launcher {
	l := &launcher{work: make(chan func())}
	ready := make(chan struct{})
	go onOwnThread(func() {
		if confineThread != nil {
			l.applied = confineThread()
		}
		close(ready)
		for f := range l.work {
			f()
		}
	})
	<-ready
	return l
}

// onOwnThread runs f on a thread that runs nothing else. It is not the main thread,
// which /proc and signals use for the process.
func onOwnThread(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		f()
		return
	}
	taken := make(chan struct{})
	go onOwnThread(func() { // cannot get this thread while it is locked
		close(taken)
		f()
	})
	<-taken
	runtime.UnlockOSThread()
}

// launch starts this program in another mode.
func (l *launcher) launch(mode string, files []*os.File) (pid int, err error) {
	attr := &syscall.ProcAttr{
		Env: []string{"GOTRACEBACK=none"}, // a crash is not logged
		Sys: &syscall.SysProcAttr{Setsid: true},
	}
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	done := make(chan struct{})
	l.work <- func() {
		defer close(done)
		pid, err = syscall.ForkExec("/proc/self/exe", []string{"sandbox", mode}, attr)
	}
	<-done
	if err != nil {
		return 0, fmt.Errorf("starting a %s: %w", mode, err)
	}
	return pid, nil
}
