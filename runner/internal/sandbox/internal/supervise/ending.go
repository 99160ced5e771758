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
	// stopGrace is how long a command may run after SIGTERM when it is stopped at its
	// time limit or by the runner.
	stopGrace = 500 * time.Millisecond
	// helpInterval is how long it kills processes before it asks the server for help.
	helpInterval = 200 * time.Millisecond
	// causeTimeout is how long the server may take to say why a command was killed.
	causeTimeout = 10 * time.Second
)

// finish waits until the command ends or has to be stopped, and kills all of its
// descendants.
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
	if !proc.IsClosed(s.allEnded) {
		_ = syscall.Kill(-s.main, syscall.SIGKILL) // the process group at once: mostly nothing else is left
	}
	defer time.AfterFunc(helpInterval, s.askForHelp).Stop()
	_ = proc.End(os.Getpid(), nil, s.allEnded) // returns when all have ended
	<-s.ended
	return why
}

// killCause asks the server whether it killed the command. The server sends the cause before it kills, and the answer
// to this question later, so the first message is the cause, even on a busy machine.
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

// askForHelp asks the server to kill processes that fork faster than the supervisor
// can kill them, until none is left.
func (s *supervisor) askForHelp() {
	for {
		_ = s.server.Send(frame.Kill, nil) // if the server is gone, everything ends
		select {
		case <-s.allEnded:
			return
		case <-time.After(helpInterval):
		}
	}
}

// waitForEnd waits until the command ended, for at most d.
func (s *supervisor) waitForEnd(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.ended:
	case <-timer.C:
	}
}

// reportExit sends the rest of the output and the exit to the runner.
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

// killedForMemory reports whether the kernel's OOM killer ended the command.
func (s *supervisor) killedForMemory() bool {
	return s.status.Signaled() && s.status.Signal() == syscall.SIGKILL &&
		cgroup.Find(cgroup.Root).OOMKills() > s.assignment.OOMKills
}

// reap waits for child processes until there are none.
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
			break // no descendant is left, which is the common case
		}
		close(s.ended)
		reaped = false
	}
	close(s.allEnded)
	if reaped {
		close(s.ended)
	}
}

// wait calls wait4 for any child. It returns an error if no child exists.
func wait(status *syscall.WaitStatus, options int) (int, error) {
	for {
		pid, err := syscall.Wait4(-1, status, options, nil)
		if !errors.Is(err, syscall.EINTR) {
			return pid, err //nolint:wrapcheck // it means that there is none
		}
	}
}
