//go:build linux

package server

import (
	"os"
	"syscall"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/cgroup"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/proc"
)

// Intervals between checks while commands run. A check costs some microseconds for
// each process.
const (
	watchInterval      = 50 * time.Millisecond
	closeWatchInterval = 10 * time.Millisecond // when half of the memory is in use
)

// maxMemoryTenths is the part of the memory limit, in tenths, above which the
// largest command is ended, before the kernel ends the whole container.
const maxMemoryTenths = 9

// A watch kills processes without a supervisor and enforces the limits of processes
// and memory.
type watch struct {
	commands *commands
	sessions *sessions
	memory   cgroup.Memory
}

// run checks while commands run.
func (w *watch) run() {
	for range w.commands.wake {
		for len(w.commands.all()) > 0 {
			held := w.memory.Unreclaimable()
			w.check(held)
			<-time.After(w.interval(held))
		}
		w.check(0)
	}
}

// interval returns the time until the next check.
func (w *watch) interval(held int64) time.Duration {
	if limit := w.memory.Limit(); limit > 0 && held > limit/2 {
		return closeWatchInterval
	}
	return watchInterval
}

// check reads the process table once and ends what exceeds a limit.
func (w *watch) check(held int64) {
	t, err := proc.ReadTable()
	if err != nil {
		return // until the next check
	}
	if len(t.Below(os.Getpid(), w.commands.isSupervisor)) > 0 {
		w.commands.killOrphans() // their supervisor was killed
	}
	stopped := map[int]bool{}
	for _, p := range t.Children(os.Getpid()) {
		stopped[p.ID] = p.Stopped()
	}
	var largest *command
	var most int64
	for _, c := range w.commands.all() {
		if stopped[c.pid] {
			_ = syscall.Kill(c.pid, syscall.SIGKILL) // a stopped supervisor enforces nothing
		}
		below := t.Below(c.pid, nil)
		if c.processes > 0 && len(below) > c.processes {
			c.sendStop(sandbox.TooManyProcesses) // first, because the supervisor reports the cause
			w.commands.killCommand(c)            // at once: a fork bomb doubles
		}
		if uses := sum(below); uses > most {
			largest, most = c, uses
		}
	}
	w.endLargest(held, largest)
}

// endLargest ends the largest command when memory is nearly used up.
func (w *watch) endLargest(held int64, largest *command) {
	limit := w.memory.Limit()
	if limit == 0 || held <= limit/10*maxMemoryTenths {
		w.sessions.setPressure(pressureNormal)
		return
	}
	w.sessions.setPressure(pressureHigh)
	if largest != nil {
		largest.sendStop(sandbox.OutOfMemory)
	}
}

func sum(all []proc.Process) int64 {
	var n int64
	for _, p := range all {
		n += p.Memory
	}
	return n
}
