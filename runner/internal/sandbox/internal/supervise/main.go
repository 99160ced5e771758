//go:build linux

package supervise

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/proc"
)

// ErrKilled means that the command was killed because the runner has ended.
var ErrKilled = errors.New("the runner has ended")

// Main supervises one command. This process inherits its connections as RunnerFile
// and ServerFile.
func Main() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
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
	proc.ReserveThreads(proc.SupervisorThreads)
	return newSupervisor(runner, server).run()
}

// inheritedConn returns a connection that this process has inherited.
func inheritedConn(fd uintptr) (*frame.Conn, error) {
	f := os.NewFile(fd, "inherited")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("taking over connection %d: %w", fd, err)
	}
	return frame.New(c), nil
}

// A stop is a request to end the command.
type stop struct {
	cause  sandbox.Cause
	gentle bool // SIGTERM first
	silent bool // there is no runner to report to
}

// A supervisor runs one command and kills its descendants.
type supervisor struct {
	runner, server *frame.Conn
	assignment     Assignment
	input          *input
	output         *output

	stops chan stop // the first one is used

	main     int                // the process id of the command itself
	status   syscall.WaitStatus // set before ended is closed
	ended    chan struct{}
	allEnded chan struct{}
}

func newSupervisor(runner, server *frame.Conn) *supervisor {
	return &supervisor{
		runner: runner, server: server,
		stops: make(chan stop, 1), ended: make(chan struct{}), allEnded: make(chan struct{}),
	}
}

// run starts the command and supervises it until it has ended.
func (s *supervisor) run() error {
	first, err := s.server.Expect(frame.Start)
	if err == nil {
		err = s.server.Message(first, &s.assignment)
	}
	if err != nil {
		return fmt.Errorf("receiving the command: %w", err)
	}
	// Not before: the server opened the OOM score of this process, and the files in
	// /proc of an undumpable process belong to root.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("preparing to supervise: %w", err)
	}
	refused := s.start()
	_ = s.server.Send(frame.Started, nil) // if the server is gone, followServer notices
	if refused != nil {
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

// requestStop requests the end of the command.
func (s *supervisor) requestStop(why stop) {
	select {
	case s.stops <- why:
	default: // already requested
	}
}

// followServer handles frames of the server. The command is killed if the server
// ends.
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
	_ = s.runner.Close() // a runner that does not read the output must not block the end
}

// followRunner handles frames of the runner. The command is killed if the runner
// ends or violates the protocol.
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

// An Assignment is the command that the server sends to a supervisor.
type Assignment struct {
	Command  sandbox.Command
	Env      []string // complete
	OOMKills int64    // how many processes the OOM killer has ended before the start
}

// The file descriptors that a supervisor inherits.
const (
	RunnerFile = 3 // the runner's connection
	ServerFile = 4 // the server's
)
