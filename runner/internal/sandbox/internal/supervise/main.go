//go:build linux

package supervise

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
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

// commandNice is the nice value of commands, so that the supervisor and the server
// get CPU time. Other containers are not affected: the kernel shares CPU time
// between containers by their requests.
const commandNice = 10

// start starts the command, or returns why it cannot.
func (s *supervisor) start() *sandbox.RefusedError {
	c := s.assignment.Command
	if info, err := os.Stat(c.Dir); err != nil || !info.IsDir() {
		return &sandbox.RefusedError{Reason: sandbox.NoDirectory, Subject: c.Dir}
	}
	program, refused := findProgram(c.Args[0], c.Dir, s.assignment.Env)
	if refused != nil {
		return refused
	}
	p, err := newPipes()
	if err != nil {
		return sandbox.StartFailure(err)
	}
	defer p.closeCommand()
	s.input = newInput(s.runner, p.own[0])
	s.output = newOutput(s.runner, p.own[1:], c.Limits.Output)
	attr := &syscall.ProcAttr{
		Dir: c.Dir, Env: s.assignment.Env, Files: p.command[:],
		// If this process is killed the command is too; the server kills its
		// descendants.
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}
	s.main, err = fork(program, c.Args, attr)
	if err != nil {
		p.closeOwn()
		return startRefusal(program, err)
	}
	return nil
}

// fork starts a program from a thread that lives as long as this process, because
// Pdeathsig follows the thread. The thread has the nice value of commands.
func fork(program string, args []string, attr *syscall.ProcAttr) (pid int, err error) {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, commandNice) // of this thread; works without it too
		pid, err = syscall.ForkExec(program, args, attr)
		close(done)
		select {} // keeps the thread
	}()
	<-done
	return pid, err
}

// findProgram finds a program in the PATH of its environment.
func findProgram(name, dir string, env []string) (string, *sandbox.RefusedError) {
	if strings.ContainsRune(name, '/') {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, checkProgram(name, name)
	}
	missing := &sandbox.RefusedError{Reason: sandbox.NoProgram, Subject: name}
	for _, place := range filepath.SplitList(lookupEnv(env, "PATH")) {
		if !filepath.IsAbs(place) {
			continue // programs in the workspace are run by their path only
		}
		file := filepath.Join(place, name)
		refused := checkProgram(file, name)
		if refused == nil {
			return file, nil
		}
		if refused.Reason == sandbox.NotExecutable {
			missing = refused
		}
	}
	return "", missing
}

// checkProgram returns why a file cannot be executed; nil if it can.
func checkProgram(file, name string) *sandbox.RefusedError {
	info, err := os.Stat(file)
	if err != nil {
		return &sandbox.RefusedError{Reason: sandbox.NoProgram, Subject: name}
	}
	if !info.Mode().IsRegular() || unix.Access(file, unix.X_OK) != nil {
		return &sandbox.RefusedError{Reason: sandbox.NotExecutable, Subject: file}
	}
	return nil
}

// startRefusal returns why the kernel did not execute a program that exists.
func startRefusal(program string, err error) *sandbox.RefusedError {
	for _, one := range []syscall.Errno{syscall.ENOENT, syscall.EACCES, syscall.ENOEXEC, syscall.ELIBBAD, syscall.ENOTDIR} {
		if errors.Is(err, one) {
			return &sandbox.RefusedError{Reason: sandbox.NotExecutable, Subject: program}
		}
	}
	if errors.Is(err, syscall.E2BIG) {
		return &sandbox.RefusedError{
			Reason:  sandbox.Malformed,
			Subject: "its arguments and environment are longer than the kernel takes; pass them through a file or through its input",
		}
	}
	return sandbox.StartFailure(err)
}

// lookupEnv returns the last value of a variable in an environment.
func lookupEnv(env []string, name string) string {
	found := ""
	for _, entry := range env {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			found = v
		}
	}
	return found
}

// pipes are stdin, stdout, stderr and control of a command.
type pipes struct {
	own     [4]*os.File
	command [4]uintptr
}

func newPipes() (*pipes, error) {
	p := &pipes{}
	for i := range p.own {
		var ends [2]int
		if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
			p.closeOwn()
			p.closeCommand()
			return nil, err //nolint:wrapcheck // the caller wraps it
		}
		own, other := ends[0], ends[1]
		if i == 0 {
			own, other = other, own
		}
		_ = unix.SetNonblock(own, true) // so that reads have deadlines; never fails
		p.own[i], p.command[i] = os.NewFile(uintptr(own), "pipe"), uintptr(other)
	}
	return p, nil
}

func (p *pipes) closeOwn() {
	for _, f := range p.own {
		if f != nil {
			_ = f.Close() // nothing was written to it
		}
	}
}

func (p *pipes) closeCommand() {
	for _, fd := range p.command {
		if fd != 0 {
			_ = unix.Close(int(fd))
		}
	}
}
