package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
)

// A Sandbox runs programs where the agent's tools run.
type Sandbox interface {
	// Start runs a program. The program and its descendants are killed when ctx
	// ends or the connection is lost, and the descendants when the program exits.
	Start(ctx context.Context, c Command) (Process, error)
	// Describe returns what the image contains and what the confinement enforces.
	Describe(ctx context.Context) (Description, error)
}

// A Command is a program to run.
type Command struct {
	// ID identifies the tool call in Description.Killed. The program finds it in its
	// environment as DECKHAND_REQUEST.
	ID string `json:"id,omitempty"`
	// Args are the program and its arguments. The program is looked up in the PATH
	// of the command's environment, which is the image's unless Env says otherwise.
	Args []string `json:"args"`
	// Dir is the absolute working directory of the program. Default: the workspace.
	Dir string `json:"dir,omitempty"`
	// Env is added to the environment of the sandbox and overrides it.
	Env map[string]string `json:"env,omitempty"`
	// Limits bound the command.
	Limits Limits `json:"limits"`
}

// Limits bound one command with everything it starts.
type Limits struct {
	// Timeout is how long it may run. Zero: no limit.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Output is how many bytes of stdout and stderr are delivered; the rest is
	// counted and dropped. Zero: no limit, and a slow reader blocks the program.
	Output int64 `json:"output,omitempty"`
	// Processes is how many processes it may have at once, with about eight threads each.
	// Zero: DefaultProcesses.
	Processes int `json:"processes,omitempty"`
}

// DefaultProcesses is the default of Limits.Processes.
const DefaultProcesses = 256

// A Process is a command that was started. The caller must read its output until
// the channel is closed: unread output blocks the program.
type Process interface {
	// Stdin is the standard input of the program. Writes block while the program
	// does not read, and fail after it ended.
	Stdin() io.WriteCloser
	// Output delivers stdout, stderr and what the program writes to its file
	// descriptor 3. It is closed when the program ended.
	Output() <-chan Chunk
	// Wait waits until the program ended. It fails if the context ends first or if
	// the sandbox violates the protocol.
	Wait(ctx context.Context) (Exit, error)
	// Kill ends the program and its descendants.
	Kill() error
}

// A Stream is the source of a chunk of output.
type Stream int

// The streams of a program. Control is its file descriptor 3, which is separate
// from what it prints.
const (
	Stdout Stream = iota + 1
	Stderr
	Control
)

// A Chunk is a piece of output.
type Chunk struct {
	Stream Stream
	Data   []byte
}

// A Cause is why a command ended.
type Cause string

// The causes.
const (
	// Exited means that the program exited, or that a signal ended it that the
	// sandbox did not send.
	Exited Cause = "Exited"
	// TimedOut means that it exceeded Limits.Timeout.
	TimedOut Cause = "TimedOut"
	// Canceled means that the runner ended it.
	Canceled Cause = "Canceled"
	// TooManyProcesses means that it exceeded Limits.Processes, or had too many threads.
	TooManyProcesses Cause = "TooManyProcesses"
	// OutOfMemory means that the server ended it because the memory of the sandbox
	// was nearly used up, or that the kernel's OOM killer ended it.
	OutOfMemory Cause = "OutOfMemory"
	// SandboxLost means that the sandbox ended or was restarted.
	SandboxLost Cause = "SandboxLost"
)

// An Exit is how a command ended.
type Exit struct {
	// Code is the exit code of the program; -1 if it has none.
	Code int `json:"code"`
	// Signal is the signal that ended the program, such as SIGKILL; empty if none did.
	Signal string `json:"signal,omitempty"`
	// Cause is why the program ended.
	Cause Cause `json:"cause"`
	// Dropped is how many bytes of stdout and stderr were not delivered.
	Dropped int64 `json:"dropped,omitempty"`
	// Detail explains a Cause other than Exited to a model.
	Detail string `json:"-"`
}

// A Description is what a sandbox contains and enforces.
type Description struct {
	// Shell is the path of bash in the image, else of sh, else empty.
	Shell string `json:"shell"`
	// Python is the path of Python 3 in the image; empty if there is none.
	Python string `json:"python"`
	// Killed are the commands that were killed when the previous runner ended.
	Killed []Killed `json:"killed,omitempty"`
	// Confinement is what the probe found to be enforced.
	Confinement Confinement `json:"confinement"`
}

// A Killed command was running when its runner ended.
type Killed struct {
	ID    string `json:"id"`
	Args0 string `json:"args0"`
}

// Results for a part of the confinement.
const (
	// Enforced means that every attempt of the probe was refused.
	Enforced = "Enforced"
	// PortsOnly means that datagrams and ports below 1024 are blocked. A sandbox reports no
	// more of its network: whether a NetworkPolicy blocks higher ports is found out by the
	// runner.
	PortsOnly = "PortsOnly"
	// Unenforced means that an attempt succeeded or could not be made.
	Unenforced = "Unenforced"
)

// A Confinement is what is enforced on commands: what the probe measured, not
// what is configured.
type Confinement struct {
	// Process is Enforced if commands can neither gain privileges nor read the memory
	// and the environment of the server; else Unenforced.
	Process string `json:"process"`
	// Files is Enforced if they cannot change the program and the socket of the
	// sandbox; else Unenforced.
	Files string `json:"files"`
	// Network is PortsOnly, or Unenforced; Enforced once a NetworkPolicy was shown to block
	// higher ports, too.
	Network string `json:"network"`
	// LandlockABI is the version of Landlock that the kernel supports; zero: none.
	LandlockABI int `json:"landlockABI"`
}

// Bounds of a command. The kernel's bound for one argument is lower.
const (
	maxID    = 256
	maxArgs  = 4096
	maxEnv   = 1024
	maxLimit = 1 << 20 // processes; no container has as many
)

// Check validates a command.
func (c Command) Check() error {
	wrong := func(format string, args ...any) error {
		return &RefusedError{Reason: Malformed, Subject: fmt.Sprintf(format, args...)}
	}
	switch {
	case len(c.Args) == 0 || c.Args[0] == "":
		return wrong("it names no program")
	case len(c.ID) > maxID:
		return wrong("its ID has %d bytes; at most %d are kept", len(c.ID), maxID)
	case len(c.Args) > maxArgs || len(c.Env) > maxEnv:
		return wrong("it has more than %d arguments or %d variables; pass them through a file", maxArgs, maxEnv)
	case c.Dir != "" && !path.IsAbs(c.Dir):
		return wrong("its directory %q is not absolute", c.Dir)
	case c.Limits.Timeout < 0 || c.Limits.Output < 0 || c.Limits.Processes < 0 || c.Limits.Processes > maxLimit:
		return wrong("a limit is negative or out of reach")
	case strings.ContainsRune(c.ID+c.Dir+strings.Join(c.Args, ""), 0):
		return wrong("it contains a NUL character")
	}
	for name, value := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return wrong("%q is no variable of an environment", name)
		}
	}
	return nil
}

// Start runs a program. It returns a RefusedError if the command cannot be
// started, and a LostError if it is unknown whether the command was started; the
// client does not retry.
func (c *Client) Start(ctx context.Context, cmd Command) (Process, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	conn, s, err := c.dialInSession(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	conn.SetTimeout(startTimeout)
	if err := requestStart(conn, cmd); err != nil {
		stop()
		_ = conn.Close() // which kills what was started
		return nil, startError(ctx, s, err)
	}
	if !stop() {
		return nil, context.Cause(ctx)
	}
	conn.SetTimeout(0)
	p := newProcess(conn, s, cmd.Limits)
	go p.receive()
	go p.watch(ctx)
	return p, nil
}

// requestStart sends a command and waits until it runs.
func requestStart(conn *frame.Conn, cmd Command) error {
	if err := conn.SendMessage(frame.Start, cmd); err != nil {
		return err //nolint:wrapcheck // startError wraps it
	}
	f, err := conn.Receive()
	switch {
	case err != nil:
		return err //nolint:wrapcheck // as above
	case f.Kind == frame.Started:
		return nil
	case f.Kind == frame.Refused:
		refused := &RefusedError{}
		if err := conn.Message(f, refused); err != nil {
			return err //nolint:wrapcheck // as above
		}
		refused.Subject = short(refused.Subject)
		return refused
	}
	return fmt.Errorf("%w: %q where a program should start", frame.ErrProtocol, f.Kind)
}

// startError returns why a command was not started.
func startError(ctx context.Context, s *session, err error) error {
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return refused
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, frame.ErrProtocol) {
		return fmt.Errorf("starting a command: %w", err)
	}
	alive := time.NewTimer(lossTimeout)
	defer alive.Stop()
	select {
	case <-s.done:
		return &LostError{Detail: s.lossDetail()}
	case <-alive.C:
		return &LostError{Detail: lostSupervisor}
	}
}
