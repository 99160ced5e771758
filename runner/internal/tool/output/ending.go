package output

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Killed describes why a program was killed, for the last line of a result; empty if
// it exited.
func Killed(e sandbox.Exit, limit time.Duration) string {
	switch e.Cause {
	case sandbox.TimedOut:
		return fmt.Sprintf("killed: timed out after %s", Seconds(limit))
	case sandbox.TooManyProcesses:
		return "killed: more processes or threads at once than it may have"
	case sandbox.OutOfMemory:
		return "killed: out of memory"
	case sandbox.Canceled:
		return "killed: canceled"
	case sandbox.SandboxLost:
		return "killed: " + e.Detail
	case sandbox.Exited:
	}
	if e.Signal != "" {
		return "killed: " + e.Signal
	}
	return ""
}

// Failed reports whether a program was killed, or exited with a code other than 0.
func Failed(e sandbox.Exit) bool {
	return e.Cause != sandbox.Exited || e.Signal != "" || e.Code != 0
}

// Unstarted describes why the sandbox did not start a command.
func Unstarted(err error) string {
	if lost, ok := errors.AsType[*sandbox.LostError](err); ok {
		return "The command may or may not have begun: " + lost.Error()
	}
	if refused, ok := errors.AsType[*sandbox.RefusedError](err); ok {
		err = refused
	}
	return "Not executed: " + err.Error()
}

// Lost describes the effect of the end of the sandbox on a command.
func Lost(e sandbox.Exit) string {
	return e.Detail + "; this was killed with it and may have partly happened"
}

// Until introduces the output before a failure.
func Until(text string) string {
	if text == "" {
		return ""
	}
	return "The output until then:\n" + text
}

// Dropped describes output that was not read; empty if there is none.
func Dropped(e sandbox.Exit) string {
	if e.Dropped == 0 {
		return ""
	}
	return fmt.Sprintf("[It printed %d more bytes, which were not read.]", e.Dropped)
}

// Seconds formats a duration as the arguments of calls have them.
func Seconds(d time.Duration) string { return fmt.Sprintf("%gs", d.Seconds()) }

// Interrupted describes why a call ends before its program. It returns an error if
// the call must not have a result, because another attempt may produce it.
func Interrupted(ctx context.Context) (string, error) {
	cause := context.Cause(ctx)
	end, ok := errors.AsType[*task.EndError](cause)
	switch {
	case !ok:
		return "interrupted", nil
	case end.Reason == task.ReasonInterrupted:
		return "interrupted by shutdown", nil
	case end.Reason == task.ReasonDurationLimit:
		return "interrupted: " + end.Message, nil
	}
	return "", cause
}

// Lines joins the parts of a result that are not empty, each on its own lines.
func Lines(parts ...string) string {
	var text strings.Builder
	for _, part := range parts {
		if part == "" {
			continue
		}
		if text.Len() > 0 && !strings.HasSuffix(text.String(), "\n") {
			text.WriteByte('\n')
		}
		text.WriteString(part)
	}
	return text.String()
}
