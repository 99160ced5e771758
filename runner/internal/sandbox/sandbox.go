package sandbox

import (
	"context"
	"io"
	"time"
)

// A Sandbox runs programs where the agent's tools run.
type Sandbox interface {
	// Start runs a program. It ends when it ends, when ctx ends, or when the
	// connection does; all its descendants end with it.
	Start(ctx context.Context, c Command) (Process, error)
	// Describe says what the sandbox is.
	Describe(ctx context.Context) (Description, error)
}

// A Command is a program to run.
type Command struct {
	// ID names the call, for what is told after a crash. The program finds it in
	// its environment as DECKHAND_REQUEST.
	ID string `json:"id,omitempty"`
	// Args are the program and its arguments. The program is looked up in the PATH
	// of the command's environment, which is the image's unless Env says otherwise.
	Args []string `json:"args"`
	// Dir is where the program starts, absolute. Empty: the workspace.
	Dir string `json:"dir,omitempty"`
	// Env is laid over the clean environment of the sandbox.
	Env map[string]string `json:"env,omitempty"`
	// Limits bound the command.
	Limits Limits `json:"limits"`
}

// Limits bound one command with everything it starts.
type Limits struct {
	// Timeout is how long it may run. Zero: as long as the context and the
	// connection live.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Output is how many bytes of stdout and stderr are passed on; the rest is
	// read, counted and dropped. Zero: all of it, as fast as it is taken.
	Output int64 `json:"output,omitempty"`
	// Processes is how many it may be at once. Zero: DefaultProcesses.
	Processes int `json:"processes,omitempty"`
}

// DefaultProcesses is how many processes a command may be when nothing else is
// said.
const DefaultProcesses = 256

// A Process is a command that was started. Its output has to be taken until it
// is closed: what nobody takes holds the program up.
type Process interface {
	// Stdin is what the program reads. Writes wait while the program does not
	// read, and fail once it ended.
	Stdin() io.WriteCloser
	// Output carries stdout and stderr, and what the program writes to its file
	// descriptor 3, each chunk tagged. It is closed at the end.
	Output() <-chan Chunk
	// Wait waits for the end. An error means that the context ended first, or
	// that what the sandbox said made no sense.
	Wait(ctx context.Context) (Exit, error)
	// Kill ends the program and everything below it.
	Kill() error
}

// A Stream is where a chunk of output comes from.
type Stream int

// The streams of a program. Control is its file descriptor 3, a pipe apart from
// what it prints.
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
	// Exited means that the program ended by itself, or by a signal that did not
	// come from the sandbox.
	Exited Cause = "Exited"
	// TimedOut means that it was ended at Limits.Timeout.
	TimedOut Cause = "TimedOut"
	// Canceled means that the runner ended it.
	Canceled Cause = "Canceled"
	// TooManyProcesses means that it was ended at Limits.Processes.
	TooManyProcesses Cause = "TooManyProcesses"
	// OutOfMemory means that it was ended because the memory of the sandbox was
	// nearly used up, or that the kernel ended its program for that.
	OutOfMemory Cause = "OutOfMemory"
	// SandboxLost means that the sandbox went away below it.
	SandboxLost Cause = "SandboxLost"
)

// An Exit is how a command ended.
type Exit struct {
	// Code is the program's exit code; -1 when it had none.
	Code int `json:"code"`
	// Signal is the signal that ended the program, as SIGKILL; empty: none did.
	Signal string `json:"signal,omitempty"`
	// Cause is why it ended.
	Cause Cause `json:"cause"`
	// Dropped is how many bytes of stdout and stderr were not passed on.
	Dropped int64 `json:"dropped,omitempty"`
	// Detail says for a model what a Cause other than Exited means for it.
	Detail string `json:"-"`
}

// A Description is what a sandbox is.
type Description struct {
	// Shell is the path of bash in the image, else of sh, else empty.
	Shell string `json:"shell"`
	// Python is the path of Python 3 in the image; empty: there is none.
	Python string `json:"python"`
	// Killed is what was killed when the runner before this one went away.
	Killed []Killed `json:"killed,omitempty"`
	// Confinement is what was found when it was tried.
	Confinement Confinement `json:"confinement"`
}

// A Killed command was running when its runner went away.
type Killed struct {
	ID    string `json:"id"`
	Args0 string `json:"args0"`
}

// What was achieved of a part of the confinement.
const (
	// Enforced means that every try to get around it failed.
	Enforced = "Enforced"
	// PortsOnly means, of the network, that datagrams and the ports below 1024 are
	// closed but that a port above was not shown to be: no NetworkPolicy closes it.
	PortsOnly = "PortsOnly"
	// Unenforced means that a try succeeded, or could not be made.
	Unenforced = "Unenforced"
)

// A Confinement is what holds the commands: not what was configured, but what
// became of trying it.
type Confinement struct {
	// Process is whether commands can get privileges or read the memory and the
	// environment of the sandbox's own process: Enforced or Unenforced.
	Process string `json:"process"`
	// Files is whether they can change the sandbox's program and socket.
	Files string `json:"files"`
	// Network is whether they reach anything but loopback and the egress proxy:
	// Enforced, PortsOnly or Unenforced.
	Network string `json:"network"`
	// LandlockABI is the version of Landlock that the kernel speaks; zero: none.
	LandlockABI int `json:"landlockABI"`
}
