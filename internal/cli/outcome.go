package cli

import (
	"strconv"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// Exit codes of run --wait, which say how the Run ended.
const (
	exitFailed      = 3
	exitStopped     = 4
	exitLimit       = 5
	exitTimeout     = 6   // of --timeout: the Run continues
	exitNeedsUser   = 7   // the Run asks, and there is no terminal: it continues
	exitInterrupted = 130 // as shells count SIGINT
)

// An endedError ends a command with an exit code. The output has said why.
type endedError struct{ code int }

func (e endedError) Error() string { return "exit code " + strconv.Itoa(e.code) }

// exitCodes are the exit codes of reasons that are not failures.
var exitCodes = map[string]int{
	v1alpha1.ReasonFinished:         exitOK,
	v1alpha1.ReasonStopped:          exitStopped,
	v1alpha1.ReasonStepLimit:        exitLimit,
	v1alpha1.ReasonTokenLimit:       exitLimit,
	v1alpha1.ReasonCostLimit:        exitLimit,
	v1alpha1.ReasonDurationLimit:    exitLimit,
	v1alpha1.ReasonDeadlineExceeded: exitLimit,
	v1alpha1.ReasonIterationLimit:   exitLimit,
	v1alpha1.ReasonPendingTimeout:   exitLimit,
}

// exitCodeOf returns the exit code for the reason with which a Run ended.
func exitCodeOf(reason string) int {
	if code, is := exitCodes[reason]; is {
		return code
	}
	return exitFailed
}
