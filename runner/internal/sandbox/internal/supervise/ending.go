//go:build linux

package supervise

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/cgroup"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/proc"
)

const (
	// stopGrace is what a command has to put its things in order when it is ended at
	// its time limit or by the runner.
	stopGrace = 500 * time.Millisecond
	// helpInterval is how long it kills alone before it asks the server for help.
	helpInterval = 200 * time.Millisecond
	// causeTimeout is how long the server may take to say why a command was killed.
	causeTimeout = 10 * time.Second
)

// finish waits for the end of the command, or ends it, and everything with it.
func (s *supervisor) finish() stop {
	why := stop{cause: sandbox.Exited}
	select {
	case <-s.ended:
		why = s.killCause(why)
	case why = <-s.stops:
		if why.gentle {
			proc.Signal(os.Getpid(), syscall.SIGTERM)
			s.waitForEnd(stopGrace)
		}
	}
	if !closed(s.allEnded) {
		_ = syscall.Kill(-s.main, syscall.SIGKILL) // its group, in one instant: mostly that is all
	}
	defer time.AfterFunc(helpInterval, s.askForHelp).Stop()
	proc.End(os.Getpid(), nil, s.allEnded)
	<-s.ended
	return why
}

// killCause asks the server whether it killed the command. The server sends the
// cause before it kills, and its answer after that, so what arrives first is the
// cause however busy the machine is.
func (s *supervisor) killCause(why stop) stop {
	if !s.status.Signaled() || s.status.Signal() != syscall.SIGKILL {
		return why
	}
	_ = s.server.Send(frame.AskCause, nil) // if the server is gone, obey stops the command
	late := time.NewTimer(causeTimeout)
	defer late.Stop()
	select {
	case why = <-s.stops:
	case <-late.C:
	}
	return why
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// askForHelp asks the server for help against what forks faster than it can be killed,
// until it is gone.
func (s *supervisor) askForHelp() {
	for {
		_ = s.server.Send(frame.Kill, nil) // a server that is gone takes everything with it
		select {
		case <-s.allEnded:
			return
		case <-time.After(helpInterval):
		}
	}
}

// waitForEnd waits for the end of the command, but not for long.
func (s *supervisor) waitForEnd(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.ended:
	case <-timer.C:
	}
}

// reportExit passes on what is left of the output, and tells the runner.
func (s *supervisor) reportExit(why stop) error {
	s.input.close()
	if why.silent {
		return ErrKilled
	}
	e := sandbox.Exit{Code: s.status.ExitStatus(), Cause: why.cause, Dropped: s.output.finish()}
	if s.status.Signaled() {
		e.Signal = unix.SignalName(s.status.Signal())
	}
	if e.Cause == sandbox.Exited && s.killedForMemory() {
		e.Cause = sandbox.OutOfMemory
	}
	if s.runner.SendMessage(frame.Exit, e) != nil {
		return ErrKilled
	}
	return nil
}

// killedForMemory reports whether the kernel ended the command for want of memory.
func (s *supervisor) killedForMemory() bool {
	return s.status.Signaled() && s.status.Signal() == syscall.SIGKILL &&
		cgroup.Find(cgroup.Root).OOMKills() > s.assignment.OOMKills
}

// reap takes leave of processes until there are none.
func (s *supervisor) reap() {
	reaped := false
	for {
		var status syscall.WaitStatus
		pid, err := wait(&status, 0)
		if err != nil {
			break
		}
		if pid != s.main {
			continue
		}
		s.status, reaped = status, true
		if _, err := wait(&status, syscall.WNOHANG); err != nil {
			break // nothing is left behind, as nearly always
		}
		close(s.ended)
		reaped = false
	}
	close(s.allEnded)
	if reaped {
		close(s.ended)
	}
}

// wait waits for any child, or only asks for one; an error means that there is
// none.
func wait(status *syscall.WaitStatus, options int) (int, error) {
	for {
		pid, err := syscall.Wait4(-1, status, options, nil)
		if !errors.Is(err, syscall.EINTR) {
			return pid, err //nolint:wrapcheck // it says that there is none
		}
	}
}
