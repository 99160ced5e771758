// Package sandbox runs programs where an agent's tools run: in a container that
// holds no credential and cannot get one.
//
// The runner and the programs are in different containers, connected only by a
// unix socket on a shared volume. The runner uses a Client. The server is the
// program cmd/sandbox, whose parts are the packages below this one. It is the
// first process of its container:
//
//	runner          │ sandbox (PID 1)           the agent's programs
//	Client ─ session ─ server                   when it ends, all commands end
//	       ─ process ─ ▸ supervisor ─────────── ▸ a command and all below it
//	egress ─ proxy ─── ▸ 127.0.0.1:port ◂─────── HTTP_PROXY
//
// Each command has a connection of its own, which its supervisor serves. A
// supervisor is the subreaper of its command, so that no process outlives the
// command, even if it left the process group or holds a pipe open. One confined
// thread of the server starts all supervisors and commands (package
// internal/confine). They are therefore confined from their first instruction, in
// one domain: they may signal and debug one another, but not the server.
//
// The client does not trust the server, because a program of the model may have
// taken it over. The client bounds what it reads and closes the connection on a
// violation of the protocol.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"syscall"
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

// ErrUnavailable means that the sandbox did not accept connections in time: its
// container does not run or fails.
var ErrUnavailable = errors.New("the sandbox did not come up; its container's log and last state say why")

// A Reason is why a command was not started.
type Reason string

// The reasons.
const (
	// NoProgram means that the image has no such program.
	NoProgram Reason = "NoProgram"
	// NotExecutable means that the file exists and cannot be executed.
	NotExecutable Reason = "NotExecutable"
	// NoDirectory means that the working directory does not exist.
	NoDirectory Reason = "NoDirectory"
	// Malformed means that the command is invalid.
	Malformed Reason = "Malformed"
	// Busy means that too many commands run already.
	Busy Reason = "Busy"
	// Failed means that starting it failed for another reason.
	Failed Reason = "Failed"
)

// A RefusedError means that a command was not started and had no effect.
type RefusedError struct {
	// Reason is why the command was not started.
	Reason Reason `json:"reason"`
	// Subject is the program or directory, or the error.
	Subject string `json:"subject,omitempty"`
}

// Error returns the problem and what to do.
func (e *RefusedError) Error() string {
	switch e.Reason {
	case NoProgram:
		return fmt.Sprintf("there is no program %q in the image; look for it with `command -v`, or use an image that has it", e.Subject)
	case NotExecutable:
		return fmt.Sprintf("%q is no program that the sandbox can execute; look at its mode and its first line", e.Subject)
	case NoDirectory:
		return fmt.Sprintf("there is no directory %q to start in; make it first, or start elsewhere", e.Subject)
	case Malformed:
		return "the command cannot be run: " + e.Subject
	case Busy:
		return fmt.Sprintf("%s commands run in the sandbox already; end one first", e.Subject)
	default:
		return "the sandbox could not start the command: " + e.Subject
	}
}

// A LostError means that the sandbox ended while it started a command, so that it
// is unknown whether the command had an effect.
type LostError struct{ Detail string }

// Error returns the consequences for a model.
func (e *LostError) Error() string { return e.Detail }

// Messages for a model whose sandbox ended.
const (
	lostRestarted  = "the sandbox was restarted; background jobs, interpreters and working directory are lost"
	lostSupervisor = "the supervisor of the command ended while the command started, because a process in the sandbox killed it or no more processes were allowed; the command has ended and may have had effects"
	lostMemory     = "the sandbox ran out of memory and was restarted; background jobs, interpreters and working directory are lost"
	lostItself     = "the sandbox ended itself and was restarted, because %s; background jobs, interpreters and working directory are lost"
)

// An Ending is why a sandbox ends itself, so that the kernel kills all of its processes.
type Ending byte

// The endings.
const (
	// SupervisorsKilled means that processes of commands killed supervisors again and
	// again.
	SupervisorsKilled Ending = iota + 1
	// ProcessesLeft means that processes of ended commands could not be killed.
	ProcessesLeft
	// ProcessesUnknown means that the process table could not be read.
	ProcessesUnknown
)

// String returns the cause.
func (e Ending) String() string {
	switch e {
	case SupervisorsKilled:
		return "its processes killed the supervisors of commands again and again"
	case ProcessesLeft:
		return "processes of ended commands could not be killed"
	case ProcessesUnknown:
		return "its process table could not be read"
	default:
		return "its processes could not be controlled"
	}
}

// StartFailure returns the refusal of a command for which the kernel started no process.
func StartFailure(err error) *RefusedError {
	text := err.Error()
	switch {
	case errors.Is(err, syscall.EAGAIN):
		text += ": the container, the pod or the cluster node allows no more processes. End commands that run in the background, or start fewer processes at once"
	case errors.Is(err, syscall.ENOMEM):
		text += ": the memory of the sandbox is used up. End commands that run in the background, or use less memory at once"
	}
	return &RefusedError{Reason: Failed, Subject: text}
}

// detail explains a cause to a model.
func detail(c Cause) string {
	switch c {
	case TimedOut:
		return "it was ended at its time limit, with everything that it had started"
	case Canceled:
		return "it was canceled, with everything that it had started"
	case TooManyProcesses:
		return "it had more processes or threads at once than allowed and was ended, with everything that it had started"
	case OutOfMemory:
		return "it was ended because the memory of the sandbox was nearly used up; use less at once"
	case SandboxLost:
		return lostRestarted
	default:
		return ""
	}
}
