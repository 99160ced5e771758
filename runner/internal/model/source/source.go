// Package source has the error that says which of several Models another error came from. The
// router makes it, and the engine words advice and waits by it.
package source

import "time"

// An Error is the error of one of several Models.
type Error struct {
	// Model is the name of the Model, Credential where its key comes from, for
	// people.
	Model, Credential string
	Err               error
	// Until is the earliest time that a provider of any of the Models named for the next
	// request. Zero: none did.
	Until time.Time
	// Away is the error of a Model that is unavailable, if Err says that the session is too long
	// for the Model that was asked instead: if the session cannot be shortened, the first Model
	// can be waited for. Nil: there is none.
	Away error
}

func (e *Error) Error() string { return "Model " + e.Model + ": " + e.Err.Error() }

// Unwrap returns the error of the Model.
func (e *Error) Unwrap() error { return e.Err }
