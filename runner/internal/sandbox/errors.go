package sandbox

import (
	"errors"
	"fmt"
	"syscall"
)

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
