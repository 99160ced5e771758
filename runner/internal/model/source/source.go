// Package source has the error that names which of several Models failed. The router makes it; the engine uses it for
// advice and waits.
package source

import "time"

// An Error is the error of one of several Models.
type Error struct {
	// Model is the name of the Model, Credential describes for users where its key comes from.
	Model, Credential string
	Err               error
	// Until is the earliest time that any provider named for the next request. Zero: none did.
	Until time.Time
	// Away is the error of an unavailable Model, if Err means that the session is too long for its fallback. If the
	// session cannot be shortened, the session can wait for that Model. Nil: there is none.
	Away error
}

func (e *Error) Error() string { return "Model " + e.Model + ": " + e.Err.Error() }

// Unwrap returns the error of the Model.
func (e *Error) Unwrap() error { return e.Err }
