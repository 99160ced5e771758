// Package localtest is a sandbox for tests of tools. It runs real programs as processes of this machine, or follows the
// script of a test.
package localtest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
)

// A Sandbox runs programs on this machine. It is for well-behaved commands: it enforces only limits of time and output.
type Sandbox struct {
	// Env is the environment of every program in addition to the test's own.
	Env []string
	// Refuse, if not nil, decides before a program starts.
	Refuse func(c sandbox.Command) error

	mu      sync.Mutex
	started []sandbox.Command
}

// Started returns the commands that were started, in order.
func (s *Sandbox) Started() []sandbox.Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]sandbox.Command(nil), s.started...)
}

// Describe implements [sandbox.Sandbox].
func (*Sandbox) Describe(context.Context) (sandbox.Description, error) {
	return sandbox.Description{}, nil
}

// Start implements [sandbox.Sandbox].
func (s *Sandbox) Start(ctx context.Context, c sandbox.Command) (sandbox.Process, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.started = append(s.started, c)
	s.mu.Unlock()
	if s.Refuse != nil {
		if err := s.Refuse(c); err != nil {
			return nil, err
		}
	}
	if _, err := os.Stat(c.Dir); c.Dir != "" && errors.Is(err, fs.ErrNotExist) {
		return nil, &sandbox.RefusedError{Reason: sandbox.NoDirectory, Subject: c.Dir}
	}
	return s.start(ctx, c)
}

func (s *Sandbox) start(ctx context.Context, c sandbox.Command) (sandbox.Process, error) {
	p := &process{out: make(chan sandbox.Chunk), done: make(chan struct{}), limits: c.Limits}
	p.cmd = exec.Command(c.Args[0], c.Args[1:]...) //nolint:noctx // attend ends it
	p.cmd.Dir = c.Dir
	p.cmd.Env = append(append(os.Environ(), s.Env...), "DECKHAND_REQUEST="+c.ID)
	for name, value := range c.Env {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	var ends, given [3]*os.File
	for i := range ends {
		if ends[i], given[i], err = os.Pipe(); err != nil {
			return nil, err
		}
	}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.ExtraFiles = given[0], given[1], given[2:]
	if err = p.cmd.Start(); err != nil {
		return nil, &sandbox.RefusedError{Reason: sandbox.NoProgram, Subject: c.Args[0]}
	}
	for _, f := range given {
		f.Close()
	}
	go p.attend(ctx, ends)
	return p, nil
}

// A process is a program of this machine.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	limits sandbox.Limits
	out    chan sandbox.Chunk
	done   chan struct{}

	mu     sync.Mutex
	passed int64
	exit   sandbox.Exit
	cause  sandbox.Cause
}

func (p *process) Stdin() io.WriteCloser        { return p.stdin }
func (p *process) Output() <-chan sandbox.Chunk { return p.out }
func (p *process) Kill() error                  { p.end(sandbox.Canceled); return nil }

func (p *process) Wait(ctx context.Context) (sandbox.Exit, error) {
	select {
	case <-p.done:
		return p.exit, nil
	case <-ctx.Done():
		return sandbox.Exit{}, context.Cause(ctx)
	}
}

func (p *process) end(why sandbox.Cause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.done:
		return
	default:
	}
	if p.cause == "" {
		p.cause = why
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
}

// attend passes on output until the program ends, and then kills the processes that it left.
func (p *process) attend(ctx context.Context, ends [3]*os.File) {
	defer context.AfterFunc(ctx, func() { p.end(sandbox.Canceled) })()
	if p.limits.Timeout > 0 {
		defer time.AfterFunc(p.limits.Timeout, func() { p.end(sandbox.TimedOut) }).Stop()
	}
	var pipes sync.WaitGroup
	for i, stream := range []sandbox.Stream{sandbox.Stdout, sandbox.Stderr, sandbox.Control} {
		pipes.Go(func() { p.pass(stream, ends[i]) })
	}
	_ = p.cmd.Wait()
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	pipes.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exit.Code, p.exit.Cause = p.cmd.ProcessState.ExitCode(), sandbox.Exited
	if p.cause != "" {
		p.exit.Cause = p.cause
	}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		p.exit.Signal = map[syscall.Signal]string{9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM", 6: "SIGABRT"}[status.Signal()]
	}
	close(p.done)
	close(p.out)
}

func (p *process) pass(stream sandbox.Stream, from *os.File) {
	defer from.Close()
	for {
		data := make([]byte, 32<<10)
		n, err := from.Read(data)
		if n = p.allow(stream, n); n > 0 {
			p.out <- sandbox.Chunk{Stream: stream, Data: data[:n]}
		}
		if err != nil {
			return
		}
	}
}

// allow returns how much of some output is within the limit.
func (p *process) allow(stream sandbox.Stream, n int) int {
	if stream == sandbox.Control || p.limits.Output == 0 {
		return n
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	passed := int(min(int64(n), p.limits.Output-p.passed))
	p.passed += int64(passed)
	p.exit.Dropped += int64(n - passed)
	return passed
}
