package journal

import "fmt"

// A CorruptError means that a journal is damaged somewhere else than at its
// end, where a crash may cut it.
type CorruptError struct {
	File   string
	Line   int // from 1
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("the journal is damaged at %s line %d: %s", e.File, e.Line, e.Reason)
}

// A SupersededError means that a later attempt has taken over the state
// directory.
type SupersededError struct {
	Attempt, Later int
}

func (e *SupersededError) Error() string {
	return fmt.Sprintf("attempt %d has taken over from attempt %d", e.Later, e.Attempt)
}

// A ForeignError means that the state directory belongs to another Run.
type ForeignError struct {
	RunUID, Want string
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("the state directory belongs to the Run with UID %q, not %q", e.RunUID, e.Want)
}

// A LockedError means that another process is writing this journal.
type LockedError struct {
	Dir string
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("another runner is using the state directory %s", e.Dir)
}

// A FullError means that the disk is full and the reserved space is used up.
type FullError struct {
	Err error
}

func (e *FullError) Error() string {
	return "the disk that holds the journal is full: " + e.Err.Error()
}

func (e *FullError) Unwrap() error { return e.Err }
