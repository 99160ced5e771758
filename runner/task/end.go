package task

import "fmt"

// An EndError ends an attempt for a Reason. Whatever part of the runner finds
// that it cannot go on says so with one; anything else is RunnerFailed.
type EndError struct {
	Reason Reason
	// Message says, for people, what happened and what to do next.
	Message string
	// Cause may be nil.
	Cause error
}

// End is an EndError; a %w in the format becomes its Cause.
func End(r Reason, format string, args ...any) *EndError {
	err := fmt.Errorf(format, args...)
	e := &EndError{Reason: r, Message: err.Error()}
	if wrapped, ok := err.(interface{ Unwrap() error }); ok {
		e.Cause = wrapped.Unwrap()
	}
	return e
}

func (e *EndError) Error() string { return string(e.Reason) + ": " + e.Message }

func (e *EndError) Unwrap() error { return e.Cause }

// Commits says whether an end for this reason is a result of the attempt. Other ends leave
// the Run to be resumed, or belong to another attempt.
func (r Reason) Commits() bool {
	switch r {
	case ReasonInterrupted, ReasonFenced, ReasonSecretMissing, ReasonWaiting, ReasonPaused:
		return false
	default:
		return true
	}
}
