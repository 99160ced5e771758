// Package exit has the exit codes of commands, and the errors that a user must correct.
package exit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"syscall"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
)

// Exit codes, as docs/command-line.md lists them.
const (
	OK    = 0
	Error = 1
	Usage = 2
	// Codes of run --wait and run --local, which show how the Run ended.
	Failed    = 3
	Stopped   = 4
	Limit     = 5
	Timeout   = 6 // of --timeout: the Run continues
	NeedsUser = 7 // the Run asks, and there is no terminal: it continues
	// Interrupted and Pipe are the exit codes that shells show for programs ended by SIGINT and SIGPIPE.
	Interrupted = 130
	Pipe        = 141
)

// An EndedError ends a command with an exit code. The command has printed the cause.
type EndedError struct{ Code int }

func (e EndedError) Error() string { return "exit code " + strconv.Itoa(e.Code) }

// A UsageError is a command line that the user must change.
type UsageError struct{ message string }

func (e UsageError) Error() string { return e.message }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error {
	return UsageError{fmt.Sprintf(format, args...)}
}

// codes are the exit codes of reasons that are not failures.
var codes = map[string]int{
	v1alpha1.ReasonFinished:         OK,
	v1alpha1.ReasonReused:           OK,
	v1alpha1.ReasonStopped:          Stopped,
	v1alpha1.ReasonStepLimit:        Limit,
	v1alpha1.ReasonTokenLimit:       Limit,
	v1alpha1.ReasonCostLimit:        Limit,
	v1alpha1.ReasonDurationLimit:    Limit,
	v1alpha1.ReasonDeadlineExceeded: Limit,
	v1alpha1.ReasonIterationLimit:   Limit,
	v1alpha1.ReasonPendingTimeout:   Limit,
}

// CodeOf returns the exit code for the reason with which a Run ended.
func CodeOf(reason string) int {
	if code, is := codes[reason]; is {
		return code
	}
	return Failed
}

// With returns the exit code of a program whose command returned err, and prints the error in the words of
// explain. Servers may quote what a model wrote.
func With(ctx context.Context, err error, out io.Writer, explain func(error) string) int {
	if err == nil {
		return OK
	}
	if ended, is := errors.AsType[EndedError](err); is {
		return ended.Code
	}
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(out, "Interrupted")
		return Interrupted
	case errors.Is(err, syscall.EPIPE): // as in: kubectl deckhand logs fix | head
		return Pipe
	}
	fmt.Fprintln(out, "Error: "+untrusted.Text(explain(err)))
	if errors.As(err, new(UsageError)) {
		return Usage
	}
	return Error
}
