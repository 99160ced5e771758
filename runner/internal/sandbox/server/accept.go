//go:build linux

package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/proc"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/supervise"
)

const (
	// requestTimeout is how long whoever connects may take to say what it wants.
	requestTimeout = 10 * time.Second
	// maxConnections bounds those who have not been sorted out yet, and the
	// sessions.
	maxConnections = 64
	// maxAcceptFailure is how long the server tries to accept again after it could not, as
	// for want of file descriptors.
	maxAcceptFailure = 5 * time.Second
)

// accept takes connections until the listener is closed. If it has not been able
// to for a while it gives up: a sandbox that cannot accept is of no use, and
// nothing but a new process may help.
func (s *server) accept(l *net.UnixListener) error {
	room := make(chan struct{}, maxConnections)
	var failingSince time.Time // since when accepting fails; zero: it does not
	for {
		room <- struct{}{}
		conn, err := l.AcceptUnix()
		if err == nil {
			failingSince = time.Time{}
			go func() {
				defer func() { <-room }()
				defer conn.Close()
				s.serveConn(conn)
			}()
			continue
		}
		<-room
		if s.ending.Load() {
			return nil
		}
		if failingSince.IsZero() {
			failingSince = s.now()
		}
		if errors.Is(err, net.ErrClosed) || s.now().Sub(failingSince) >= maxAcceptFailure {
			return fmt.Errorf("the sandbox cannot accept connections: %w. It ends so that its container is started again", err)
		}
		<-time.After(requestTimeout / 100) // of descriptors there may be more in a moment
	}
}

// serveConn does what a connection is for.
func (s *server) serveConn(conn *net.UnixConn) {
	if !isFromOutside(conn) {
		return
	}
	c := frame.New(conn)
	c.SetTimeout(requestTimeout)
	first, err := c.Receive()
	if err != nil {
		return
	}
	switch first.Kind {
	case frame.Session:
		c.SetTimeout(0)
		if s.sessions.open(c) == nil {
			s.sessions.waitForEnd(c)
		}
	case frame.Describe:
		c.SetTimeout(0)
		<-s.probed
		c.SetTimeout(requestTimeout)
		_ = c.SendMessage(frame.Description, s.describe()) // who is gone needs no answer
	case frame.Start:
		if err := s.startCommand(conn, c, first); err != nil {
			_ = c.SendMessage(frame.Refused, refusedError(err)) // as above
		}
	default: // it makes no sense
	}
}

// isFromOutside reports whether who connects does not come from here. The runner is
// in another container, whose processes have no number here; a command has no
// business at this socket.
func isFromOutside(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	var peer *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err != nil || failed != nil {
		return false
	}
	return peer.Pid == 0 || !proc.Descends(int(peer.Pid), os.Getpid())
}

func refusedError(err error) *sandbox.RefusedError {
	if refused, ok := errors.AsType[*sandbox.RefusedError](err); ok {
		return refused
	}
	return &sandbox.RefusedError{Reason: sandbox.Failed, Subject: err.Error()}
}

// startCommand hands a connection over to a supervisor, with what to run.
func (s *server) startCommand(conn *net.UnixConn, c *frame.Conn, first frame.Frame) error {
	o := supervise.Assignment{OOMKills: s.memory.OOMKills()}
	if err := c.Message(first, &o.Command); err != nil {
		return fmt.Errorf("reading the command: %w", err)
	}
	if err := o.Command.Check(); err != nil {
		return err //nolint:wrapcheck // it says all
	}
	s.setDefaults(&o)
	runner, err := conn.File()
	if err != nil {
		return fmt.Errorf("handing the connection over: %w", err)
	}
	defer runner.Close()
	own, other, err := socketPair()
	if err != nil {
		return err
	}
	defer other.Close()
	one := &command{
		Killed: sandbox.Killed{ID: o.Command.ID, Args0: o.Command.Args[0]},
		server: own, processes: o.Command.Limits.Processes, ended: make(chan struct{}),
	}
	err = s.commands.add(one, func() (int, error) {
		return s.launcher.launch("supervise", []*os.File{s.null, os.Stderr, os.Stderr, runner, other})
	})
	if err != nil {
		one.disconnect()
		return err
	}
	own.SetTimeout(requestTimeout)
	if err := own.SendMessage(frame.Start, o); err != nil {
		one.disconnect() // the supervisor ends without orders, and the runner hears of it
	}
	own.SetTimeout(0)
	go one.serveSupervisor(s.commands)
	return nil
}

// setDefaults fills in what the runner left to the sandbox.
func (s *server) setDefaults(o *supervise.Assignment) {
	c := &o.Command
	if c.Dir == "" {
		c.Dir = s.options.Workspace
	}
	if c.Limits.Processes == 0 {
		c.Limits.Processes = sandbox.DefaultProcesses
	}
	o.Env = commandEnvironment(s.env, c.ID, c.Env)
	c.Env = nil
}

// socketPair is a connection between this process and one that it starts.
func socketPair() (*frame.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a connection: %w", err)
	}
	own, other := os.NewFile(uintptr(fds[0]), "own"), os.NewFile(uintptr(fds[1]), "other")
	defer own.Close()
	conn, err := net.FileConn(own)
	if err != nil {
		_ = other.Close() // it is of no use
		return nil, nil, fmt.Errorf("making a connection: %w", err)
	}
	return frame.New(conn), other, nil
}

// describe says what this sandbox is.
func (s *server) describe() sandbox.Description {
	return sandbox.Description{
		Shell: s.findProgram("bash", "sh"), Python: s.findProgram("python3", "python"),
		Killed: s.sessions.previouslyKilled(), Confinement: s.confinement,
	}
}

// findProgram is the path of the first of some programs that is in the image.
func (s *server) findProgram(names ...string) string {
	for _, name := range names {
		for dir := range strings.SplitSeq(lookup(s.env, "PATH"), ":") {
			file := dir + "/" + name
			if path, err := exec.LookPath(file); err == nil && strings.HasPrefix(path, "/") {
				return path
			}
		}
	}
	return ""
}
