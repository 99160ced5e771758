//go:build linux

package supervise

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/proc"
)

// oomScoreStep is how much sooner commands are ended by a kernel that is out of
// memory, in thousandths of the memory that there is.
const oomScoreStep = 100

// ErrKilled means that the command was ended for want of a runner to tell.
var ErrKilled = errors.New("the runner has ended")

// Main supervises one command, whose connections this process was started with.
func Main() error {
	raiseOOMScore() // before it is undumpable, since its files in /proc belong to root then
	if err := errors.Join(
		unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0),
		unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0),
	); err != nil {
		return fmt.Errorf("preparing to supervise: %w", err)
	}
	runner, err := inheritedConn(RunnerFile)
	if err != nil {
		return err
	}
	server, err := inheritedConn(ServerFile)
	if err != nil {
		return err
	}
	proc.ReserveThreads()
	return newSupervisor(runner, server).run()
}

// raiseOOMScore makes the kernel end what is started from here before the server.
func raiseOOMScore() {
	const file = "/proc/self/oom_score_adj"
	text, err := os.ReadFile(file)
	if err != nil {
		return
	}
	own, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return
	}
	_ = os.WriteFile(file, []byte(strconv.Itoa(min(own+oomScoreStep, 1000))), 0) // it is no worse without
}

// inheritedConn is a connection that this process was started with.
func inheritedConn(fd uintptr) (*frame.Conn, error) {
	f := os.NewFile(fd, "inherited")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("taking over connection %d: %w", fd, err)
	}
	return frame.New(c), nil
}

// A stop is why a command has to end before it does by itself.
type stop struct {
	cause  sandbox.Cause
	gentle bool // SIGTERM first
	silent bool // there is nobody to tell
}

// A supervisor stands above one command.
type supervisor struct {
	runner, server *frame.Conn
	assignment     Assignment
	input          *input
	output         *output

	stops chan stop // the first is what counts

	main     int                // the process id of the command itself
	status   syscall.WaitStatus // how it ended, once ended is closed
	ended    chan struct{}
	allEnded chan struct{}
}

func newSupervisor(runner, server *frame.Conn) *supervisor {
	return &supervisor{
		runner: runner, server: server,
		stops: make(chan stop, 1), ended: make(chan struct{}), allEnded: make(chan struct{}),
	}
}

// run supervises the command from its start to its end.
func (s *supervisor) run() error {
	first, err := s.server.Expect(frame.Start)
	if err == nil {
		err = s.server.Message(first, &s.assignment)
	}
	if err != nil {
		return fmt.Errorf("taking orders: %w", err)
	}
	if refused := s.start(); refused != nil {
		return s.runner.SendMessage(frame.Refused, refused)
	}
	if err := s.runner.Send(frame.Started, nil); err != nil {
		s.requestStop(stop{cause: sandbox.Canceled, silent: true})
	}
	go s.followServer()
	go s.followRunner()
	go s.reap()
	s.output.start()
	if t := s.assignment.Command.Limits.Timeout; t > 0 {
		defer time.AfterFunc(t, func() { s.requestStop(stop{cause: sandbox.TimedOut, gentle: true}) }).Stop()
	}
	return s.reportExit(s.finish())
}

// requestStop asks for the end of the command.
func (s *supervisor) requestStop(why stop) {
	select {
	case s.stops <- why:
	default: // it has to end already
	}
}

// followServer does what the server says; without a server nothing may run.
func (s *supervisor) followServer() {
	for {
		f, err := s.server.Expect(frame.Kill)
		if err != nil {
			break
		}
		s.requestStop(stop{cause: sandbox.Cause(f.Data)})
	}
	s.requestStop(stop{cause: sandbox.Canceled, silent: true})
	<-s.allEnded
	_ = s.runner.Close() // whoever does not take the output holds nothing up
}

// followRunner does what the runner says; nothing runs for a runner that is gone, or
// makes no sense.
func (s *supervisor) followRunner() {
	for {
		f, err := s.runner.Receive()
		if err == nil {
			err = s.handleFrame(f)
		}
		if err != nil {
			s.requestStop(stop{cause: sandbox.Canceled, silent: true})
			return
		}
	}
}

func (s *supervisor) handleFrame(f frame.Frame) error {
	switch f.Kind {
	case frame.Stdin:
		return s.input.add(f.Data)
	case frame.StdinClose:
		s.input.end()
	case frame.Kill:
		s.requestStop(stop{cause: sandbox.Canceled, gentle: true})
	default:
		return fmt.Errorf("%w: %q to a process", frame.ErrProtocol, f.Kind)
	}
	return nil
}
