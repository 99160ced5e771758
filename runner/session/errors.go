package session

import (
	"errors"
	"fmt"
)

// Errors of a Store, to be found with errors.Is.
var (
	ErrNotFound = errors.New("no such session")
	ErrConflict = errors.New("the session has gone on")
	ErrOwner    = errors.New("the session belongs to another owner")
	ErrFull     = errors.New("the session store is full")
	ErrInvalid  = errors.New("not valid")
	ErrCursor   = errors.New("the cursor was not returned by List")
)

// A ConflictError means that the last step of a session has another number than the caller
// named. It is ErrConflict.
type ConflictError struct {
	Session string
	Last    int64 // its number
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("the last step of the session %s is %d", e.Session, e.Last)
}

// Is makes the error ErrConflict.
func (*ConflictError) Is(target error) bool { return target == ErrConflict }

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}
