package git

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/deckhand-dev/deckhand/runner/internal/redact"
)

// maxWords bounds what is quoted of a server, in bytes.
const maxWords = 512

// A RefusedError says that something cannot be done until a person has changed
// something, and what. Any other error may pass.
type RefusedError struct {
	// Message is a sentence for people.
	Message string
}

func (e *RefusedError) Error() string { return e.Message }

// Refused is a RefusedError.
func Refused(format string, args ...any) *RefusedError {
	return &RefusedError{Message: fmt.Sprintf(format, args...)}
}

// A hiddenError is an error without the credentials that were in its text. What
// it wraps can be asked for, not read.
type hiddenError struct {
	text string
	err  error
}

func (e *hiddenError) Error() string        { return e.text }
func (e *hiddenError) Is(target error) bool { return errors.Is(e.err, target) }

// hide takes the credentials out of an error.
func hide(err error, secrets *redact.Redactor) error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return &RefusedError{Message: secrets.String(refused.Message)}
	}
	return &hiddenError{text: secrets.String(err.Error()), err: err}
}

// during says what was being done, except of what is for people: that is a
// sentence of its own.
func during(doing string, err error) error {
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return refused
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// words is what a server said, fit to be quoted in a sentence.
func words(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxWords {
		s = strings.ToValidUTF8(s[:maxWords], "") + "…"
	}
	return s
}
