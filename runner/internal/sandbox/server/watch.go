//go:build linux

package server

import (
	"os"
	"runtime"
	"slices"
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

// Bounds of repeated findings of the watch.
const (
	// maxStopped is how many times in a row a supervisor may be found stopped before it is killed.
	maxStopped = 20
	// maxUnreadable is how many times in a row the process table may be unreadable before the server ends: about five
	// seconds.
	maxUnreadable = 100
)

// maxProcesses bounds the processes of all commands together, unless one command may
// have more.
const maxProcesses = 2048

// Bounds of the threads of a command, which also take places in the process table. Runtimes and compilers have some
// tens in each process, and more with more CPUs.
const (
	threadsPerProcess = 8 // that the command may have
	threadsPerCPU     = 64
	minThreads        = 512
)

// maxThreads returns the maximum number of threads for a maximum number of processes.
func maxThreads(processes, cpus int) int {
	return max(threadsPerProcess*processes, threadsPerCPU*cpus, minThreads)
}

// maxMemoryTenths is the part of the memory limit, in tenths, above which the
// largest command is ended, before the kernel ends the whole container.
const maxMemoryTenths = 9

// A watch kills processes without a supervisor and enforces the limits of processes
// and memory.
type watch struct {
	commands *commands
	sessions *sessions
	memory   cgroup.Memory

	stopped    map[int]int // how often in a row a supervisor was found stopped, by PID
	unreadable int         // how often in a row the process table could not be read
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
		w.commands.suspectOrphans()
		if w.unreadable++; w.unreadable >= maxUnreadable {
			w.commands.fail(sandbox.ProcessesUnknown)
		}
		return // until the next check
	}
	w.unreadable = 0
	orphans := len(t.Below(os.Getpid(), w.commands.isSupervisor))
	if orphans > 0 {
		w.commands.killOrphans() // their supervisor was killed
	}
	w.resumeSupervisors(t.Children(os.Getpid()))
	var all []load
	for _, c := range w.commands.all() {
		all = append(all, load{command: c, Count: t.Count(c.pid), memory: sum(t.Below(c.pid, nil))})
	}
	w.limitProcesses(all)
	if orphans > 0 {
		all = nil // the memory may be theirs
	}
	w.endLargest(held, all)
}

// resumeSupervisors resumes supervisors that a command stopped, because a stopped supervisor enforces nothing. It kills
// supervisors that are found stopped each time.
func (w *watch) resumeSupervisors(children []proc.Process) {
	before := w.stopped
	w.stopped = map[int]int{}
	for _, p := range children {
		if !p.Stopped() || !w.commands.isSupervisor(p.ID) {
			continue
		}
		w.stopped[p.ID] = before[p.ID] + 1
		if w.stopped[p.ID] > maxStopped {
			_ = syscall.Kill(p.ID, syscall.SIGKILL) // it may have ended
		} else {
			_ = syscall.Kill(p.ID, syscall.SIGCONT) // as above
		}
	}
}

// A load is the usage of one command.
type load struct {
	command *command
	proc.Count
	memory int64
}

// limitProcesses ends each command with too many processes or threads. If all commands together have too many, it ends
// the one with the most.
func (w *watch) limitProcesses(all []load) {
	for _, u := range tooMany(all, runtime.NumCPU()) {
		u.sendStop(sandbox.TooManyProcesses) // first, because the supervisor reports the cause
		w.commands.killCommand(u)            // at once: a fork bomb doubles
	}
}

// tooMany returns the commands that limitProcesses ends. Commands that exceed their own limit do not count against the
// others.
func tooMany(all []load, cpus int) []*command {
	var out []*command
	var rest []load
	var total proc.Count
	bound := maxProcesses
	for _, u := range all {
		own := u.command.processes
		bound = max(bound, own)
		if own > 0 && (u.Processes > own || u.Threads > maxThreads(own, cpus)) {
			out = append(out, u.command)
			continue
		}
		rest = append(rest, u)
		total.Processes += u.Processes
		total.Threads += u.Threads
	}
	switch {
	case total.Processes > bound:
		out = append(out, slices.MaxFunc(rest, func(a, b load) int { return a.Processes - b.Processes }).command)
	case total.Threads > maxThreads(bound, cpus):
		out = append(out, slices.MaxFunc(rest, func(a, b load) int { return a.Threads - b.Threads }).command)
	}
	return out
}

// endLargest ends the command with the most memory when memory is nearly used up.
func (w *watch) endLargest(held int64, all []load) {
	limit := w.memory.Limit()
	if limit == 0 || held <= limit/10*maxMemoryTenths {
		w.sessions.setPressure(pressureNormal)
		return
	}
	w.sessions.setPressure(pressureHigh)
	var largest load
	for _, u := range all {
		if u.memory > largest.memory {
			largest = u
		}
	}
	if largest.command != nil {
		largest.command.sendStop(sandbox.OutOfMemory)
	}
}

func sum(all []proc.Process) int64 {
	var n int64
	for _, p := range all {
		n += p.Memory
	}
	return n
}
