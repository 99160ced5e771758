//go:build linux

package proc

import (
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// killInterval is the time between two rounds of kills.
const killInterval = 2 * time.Millisecond

// maxKillRounds bounds End without a gone channel.
const maxKillRounds = 500

// End kills the descendants of a process, except subtrees whose root spare accepts,
// until gone is closed. With a nil gone it returns when it finds none, or after
// maxKillRounds. Each round stops all processes before it kills any, so that none
// reacts to the death of another.
//
// A process that forks faster than the process table is read can escape; see
// Sweep.
func End(id int, spare func(id int) bool, gone <-chan struct{}) {
	tick := time.NewTicker(killInterval)
	defer tick.Stop()
	for n := 0; !closed(gone); n++ {
		t, err := ReadTable()
		if err != nil {
			return
		}
		left := t.Below(id, spare)
		signalAll(left, syscall.SIGSTOP)
		signalAll(left, syscall.SIGKILL)
		if gone == nil && (len(left) == 0 || n == maxKillRounds) {
			return
		}
		select {
		case <-gone:
		case <-tick.C:
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Signal sends a signal to the descendants of a process.
func Signal(id int, s syscall.Signal) {
	if t, err := ReadTable(); err == nil {
		signalAll(t.Below(id, nil), s)
	}
}

func signalAll(all []Process, s syscall.Signal) {
	for _, p := range all {
		signal(p, s)
	}
}

// signal sends a signal to a process, but not to another process that has got its
// PID since the table was read: on a busy machine PIDs are reused within seconds.
func signal(p Process, s syscall.Signal) {
	fd, err := unix.PidfdOpen(p.ID, 0)
	if err != nil {
		return // it is gone
	}
	defer unix.Close(fd) //nolint:errcheck // it was only signaled
	var line [1024]byte
	if now, ok := stat(p.ID, line[:]); ok && now.StartTime == p.StartTime {
		_ = unix.PidfdSendSignal(fd, s, nil, 0) // it may have ended
	}
}

// Sweep is End for processes that fork fast. As PID 1 of a container it stops all
// other processes at once, kills, and lets the rest continue. Otherwise it calls
// End.
func Sweep(id int, spare func(id int) bool) {
	if os.Getpid() != 1 {
		End(id, spare, nil)
		return
	}
	sweeping.Lock()
	defer sweeping.Unlock()
	before, err := readTable()
	if err != nil {
		return
	}
	_ = syscall.Kill(-1, syscall.SIGSTOP) // fails only if there is no other process
	t, err := readTable()
	if err == nil {
		for _, p := range t.Below(id, spare) {
			_ = syscall.Kill(p.ID, syscall.SIGKILL) // all are stopped, so no PID was reused
		}
	}
	for _, p := range t.all() {
		if p.ID != 1 && !before.stopped(p) {
			_ = syscall.Kill(p.ID, syscall.SIGCONT) // no effect on those that were killed
		}
	}
}

// spareThreads is how many threads ReserveThreads creates. When a command has used
// up the process limit of the container, no thread can be created, and then the
// supervisor needs some to kill it.
const spareThreads = 6

// ReserveThreads creates threads in advance, which the Go runtime keeps.
func ReserveThreads() {
	var met, all sync.WaitGroup
	met.Add(spareThreads)
	for range spareThreads {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			met.Done()
			met.Wait() // until each goroutine has a thread
		})
	}
	all.Wait()
}
