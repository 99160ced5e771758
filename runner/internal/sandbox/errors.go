package sandbox

import (
	"errors"
	"fmt"
)

// ErrUnavailable means that the sandbox was not there in time: its container
// does not run, or does not come up.
var ErrUnavailable = errors.New("the sandbox did not come up; its container's log and last state say why")

// A Reason is why a command was not started.
type Reason string

// The reasons.
const (
	// NoProgram means that the image has no such program.
	NoProgram Reason = "NoProgram"
	// NotExecutable means that there is such a file, which does not run.
	NotExecutable Reason = "NotExecutable"
	// NoDirectory means that the directory to start in is not there.
	NoDirectory Reason = "NoDirectory"
	// Malformed means that the command is none.
	Malformed Reason = "Malformed"
	// Busy means that too many commands run already.
	Busy Reason = "Busy"
	// Failed means that starting it failed otherwise.
	Failed Reason = "Failed"
)

// A RefusedError means that a command was not started; nothing of it happened.
type RefusedError struct {
	// Reason is which kind of refusal it is.
	Reason Reason `json:"reason"`
	// Subject is the program or directory that it is about, or what went wrong.
	Subject string `json:"subject,omitempty"`
}

// Error says what to do instead.
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

// A LostError means that the sandbox went away while a command was being
// started, so that nobody knows whether it did anything.
type LostError struct{ Detail string }

// Error says what it means for a model.
func (e *LostError) Error() string { return e.Detail }

// What a model reads when the sandbox went away.
const (
	lostRestarted  = "the sandbox was restarted; background jobs, interpreters and working directory are lost"
	lostSupervisor = "something in the sandbox killed what watched over the command as it started; the command has ended and may have done something"
	lostMemory     = "the sandbox ran out of memory and was restarted; background jobs, interpreters and working directory are lost"
)

// detail says for a model what a cause means.
func detail(c Cause) string {
	switch c {
	case TimedOut:
		return "it was ended at its time limit, with everything that it had started"
	case Canceled:
		return "it was canceled, with everything that it had started"
	case TooManyProcesses:
		return "it started more processes than allowed and was ended, with everything that it had started"
	case OutOfMemory:
		return "it was ended because the memory of the sandbox was nearly used up; use less at once"
	case SandboxLost:
		return lostRestarted
	default:
		return ""
	}
}
