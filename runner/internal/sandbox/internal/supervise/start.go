//go:build linux

package supervise

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
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
