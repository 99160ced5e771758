//go:build linux

package server

import (
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/deckhand-dev/deckhand/internal/clock"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/proc"
)

// maxCommands is how many commands run at once.
const maxCommands = 64

// endTimeout is how long a supervisor has to end its command when it is told.
const endTimeout = 3 * time.Second

// A command is one that runs, by its supervisor.
type command struct {
	sandbox.Killed
	pid       int         // the supervisor's
	server    *frame.Conn // by which it is told; nil for what is no command
	processes int
	stopSent  bool // to end; of the watch alone
	ended     chan struct{}
	killed    bool // it did not end by itself; set before ended is closed
}

// sendStop has a supervisor end its command.
func (c *command) sendStop(why sandbox.Cause) {
	if c.server == nil || c.stopSent {
		return
	}
	c.stopSent = true
	_ = c.server.SetWriteDeadline(clock.Now().Add(time.Second)) // fails only on a connection that fails anyway
	_ = c.server.Send(frame.Kill, []byte(why))                  // a supervisor that is gone is buried anyway
}

// serveSupervisor helps a supervisor whose command forks faster than it can kill, and
// answers why a command was killed: if the server did it, tell has sent the cause
// before this answer.
func (c *command) serveSupervisor(all *commands) {
	for {
		f, err := c.server.Receive()
		switch {
		case err == nil && f.Kind == frame.Kill:
			all.killCommand(c)
		case err == nil && f.Kind == frame.AskCause:
			_ = c.server.Send(frame.Kill, []byte(sandbox.Exited)) // a supervisor that ended needs no answer
		default:
			return
		}
	}
}

// disconnect leaves a supervisor without a server, at which it ends its command.
func (c *command) disconnect() {
	if c.server != nil {
		_ = c.server.Close() // as often as it is wanted
	}
}

// Commands are those that run.
type commands struct {
	mu      sync.Mutex
	open    bool // whether there is a runner to run them for
	running map[int]*command
	wake    chan struct{} // stopSent when there is something to watch
}

func newCommands() *commands {
	return &commands{running: map[int]*command{}, wake: make(chan struct{}, 1)}
}

// add starts a supervisor and lists it, as one step for everybody else.
func (c *commands) add(one *command, launch func() (int, error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one.server != nil && !c.open {
		return &sandbox.RefusedError{Reason: sandbox.Failed, Subject: "no runner has opened a session"}
	}
	if len(c.running) >= maxCommands {
		return &sandbox.RefusedError{Reason: sandbox.Busy, Subject: "64"}
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

// all are the commands that run.
func (c *commands) all() []*command {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*command, 0, len(c.running))
	for _, one := range c.running {
		list = append(list, one)
	}
	return list
}

// setOpen lets commands be started from now on, or no longer.
func (c *commands) setOpen(open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = open
}

// reap takes leave of children that ended, each time one did.
func (c *commands) reap(ended <-chan os.Signal) {
	for range ended {
		for {
			var status syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
			if err != nil || pid <= 0 {
				break
			}
			c.removeEnded(pid, status)
		}
	}
}

// removeEnded takes a supervisor from the list. One that told the runner how its command
// ended leaves with 0.
func (c *commands) removeEnded(pid int, status syscall.WaitStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.running[pid]
	if one == nil {
		return // an orphan
	}
	delete(c.running, pid)
	one.disconnect()
	one.killed = one.server != nil && status != 0
	close(one.ended)
}

// endAll ends every command and returns which did not end by themselves.
// Supervisors do it; those that do not are ended with their commands.
func (c *commands) endAll(within time.Duration) []sandbox.Killed {
	list := c.all()
	for _, one := range list {
		one.disconnect()
	}
	late := time.AfterFunc(within, func() { c.killBelow(os.Getpid(), nil) })
	defer late.Stop()
	var killed []sandbox.Killed
	for _, one := range list {
		<-one.ended
		if one.killed {
			killed = append(killed, one.Killed)
		}
	}
	c.killOrphans() // those whose supervisors ended before them
	return killed
}

// killCommand kills everything of one command.
func (c *commands) killCommand(one *command) { c.killBelow(one.pid, nil) }

// killOrphans kills everything that has no supervisor.
func (c *commands) killOrphans() {
	c.killBelow(os.Getpid(), func(pid int) bool { return c.running[pid] != nil })
}

// killBelow sweeps while nothing is being started: what is stopped between its fork
// and its first instruction holds the launcher up.
func (c *commands) killBelow(pid int, spare func(int) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	proc.Sweep(pid, spare)
}
