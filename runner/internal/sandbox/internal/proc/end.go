//go:build linux

package proc

import (
	"cmp"
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Intervals between two rounds of kills. Sweep doubles its interval, because each of
// its rounds stops all commands.
const (
	killInterval     = 2 * time.Millisecond
	maxSweepInterval = 64 * time.Millisecond
)

// Bounds of End without a gone channel, and of Sweep, in rounds: a second and five. On a
// busy machine a killed process may need that long to end.
const (
	maxKillRounds  = 500
	maxSweepRounds = 80
)

// errLeft means that processes did not end after they were killed.
var errLeft = errors.New("some processes were killed and have not ended")

// End kills the descendants of a process, except subtrees whose root spare accepts,
// until gone is closed. With a nil gone it returns nil when it finds none, or an error
// after maxKillRounds. A process table that cannot be read is read again in the next
// round. Each round stops all processes before it kills any, so that none reacts to the
// death of another.
//
// A process that forks faster than the process table is read can escape; see
// Sweep.
func End(id int, spare func(id int) bool, gone <-chan struct{}) error {
	tick := time.NewTicker(killInterval)
	defer tick.Stop()
	var failed error
	for n := 0; !IsClosed(gone); n++ {
		t, err := ReadTable()
		left := t.Below(id, spare)
		signalAll(left, syscall.SIGSTOP)
		signalAll(left, syscall.SIGKILL)
		if gone == nil {
			if err == nil && len(left) == 0 && !t.partial {
				return nil
			}
			if failed = cmp.Or(err, errLeft); n == maxKillRounds {
				break
			}
		}
		select {
		case <-gone:
		case <-tick.C:
		}
	}
	return failed
}

// IsClosed reports whether a channel is closed.
func IsClosed(c <-chan struct{}) bool {
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
		return // it is gone, or the next round signals it
	}
	defer unix.Close(fd) //nolint:errcheck // it was only signaled
	var line [1024]byte
	if now, err := stat(p.ID, line[:]); err == nil && now.StartTime == p.StartTime {
		_ = unix.PidfdSendSignal(fd, s, nil, 0) // it may have ended
	}
}

// Sweep is End for processes that fork fast. As PID 1 of a container it stops all
// other processes at once, kills, and lets the rest continue, until a round finds
// nothing to kill. It returns an error if that is not so after maxSweepRounds, or if
// the process table cannot be read. Otherwise it calls End.
func Sweep(id int, spare func(id int) bool) error {
	if os.Getpid() != 1 {
		return End(id, spare, nil)
	}
	sweeping.Lock()
	defer sweeping.Unlock()
	var failed error
	for n, interval := 0, killInterval; n < maxSweepRounds; n++ {
		t, killed, err := sweepOnce(readTable, signalPID, target{id, spare})
		if err == nil && killed == 0 && !t.partial {
			return nil
		}
		failed = cmp.Or(err, errLeft)
		<-time.After(interval)
		interval = min(2*interval, maxSweepInterval)
	}
	return failed
}

// A target is the descendants of a process, except subtrees whose root spare accepts.
type target struct {
	id    int
	spare func(id int) bool
}

// signalPID sends a signal by number.
func signalPID(id int, s syscall.Signal) {
	_ = syscall.Kill(id, s) // it may have ended
}

// sweepOnce stops all processes, kills the targets and lets the rest continue, even if a step fails. It returns how
// many processes it killed.
func sweepOnce(read func() (Table, error), send func(id int, s syscall.Signal), of target) (t Table, killed int, err error) {
	before, err := read()
	if err != nil {
		return Table{}, 0, err
	}
	defer func() {
		if t.children == nil { // it was not read
			send(-1, syscall.SIGCONT) // which needs neither memory nor file descriptors
			return
		}
		resume(before, t, send)
	}()
	send(-1, syscall.SIGSTOP)
	t, err = read()
	if err != nil {
		return t, 0, err
	}
	all := t.Below(of.id, of.spare)
	for _, p := range all {
		send(p.ID, syscall.SIGKILL) // all are stopped, so no PID was reused
	}
	return t, len(all), nil
}

// resume lets all processes continue that were not stopped before. Children of this
// process always continue: supervisors are never left stopped.
func resume(before, now Table, send func(id int, s syscall.Signal)) {
	for _, p := range now.all() {
		if p.ID != 1 && (p.Parent == 1 || !before.stopped(p)) {
			send(p.ID, syscall.SIGCONT) // no effect on those that were killed
		}
	}
}

// How many threads ReserveThreads creates. When commands have used up the process limit of
// the container, the Go runtime can create no thread and ends the process. On a busy machine
// it needs one for each goroutine that is in a system call.
const (
	SupervisorThreads = 8
	ServerThreads     = 24
)

// ReserveThreads creates threads in advance, which the Go runtime keeps.
func ReserveThreads(spareThreads int) {
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
