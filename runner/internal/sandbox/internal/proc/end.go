//go:build linux

package proc

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// killInterval is the time between two rounds of killing.
const killInterval = 2 * time.Millisecond

// maxKillRounds bounds killing when nobody says that all are gone.
const maxKillRounds = 500

// End kills everything below a process, without those that spare names and what
// is below them, until gone is closed. Without gone it is until it sees nothing
// left, or gives up on what does not die. In each round everything is stopped
// before anything is killed, so that nothing reacts to the death of another.
//
// What forks faster than this looks escapes it; see Sweep.
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

// Signal sends a signal to everything below a process.
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

// signal sends a signal to a process, and not to another that was given its
// number meanwhile: where much is started and ends, numbers return within
// seconds.
func signal(p Process, s syscall.Signal) {
	fd, err := unix.PidfdOpen(p.ID, 0)
	if err != nil {
		return // it is gone
	}
	defer unix.Close(fd) //nolint:errcheck // it was only signaled
	var line [1024]byte
	if now, ok := stat(p.ID, line[:]); ok && now.StartTime == p.StartTime {
		_ = unix.PidfdSendSignal(fd, s, nil, 0) // it may end in this moment
	}
}

// Sweep kills everything below a process, without those that spare names and
// what is below them, however fast it forks: the first process of a container
// can stop all others in one instant, look, kill, and let the rest go
// on. Elsewhere it is End.
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
	_ = syscall.Kill(-1, syscall.SIGSTOP) // nobody is there: as good
	t, err := readTable()
	if err == nil {
		for _, p := range t.Below(id, spare) {
			_ = syscall.Kill(p.ID, syscall.SIGKILL) // nothing moves: it is the one that was seen
		}
	}
	for _, p := range t.all() {
		if p.ID != 1 && !before.stopped(p) {
			_ = syscall.Kill(p.ID, syscall.SIGCONT) // the dying do not mind
		}
	}
}
