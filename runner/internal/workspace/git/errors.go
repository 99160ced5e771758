package git

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/deckhand-dev/deckhand/runner/internal/redact"
)

// maxWords bounds a quotation of a server, in bytes.
const maxWords = 512

// A RefusedError means that a user has to change something, and says what. Any other error
// may be transient.
type RefusedError struct {
	// Message is a sentence for people.
	Message string
}

func (e *RefusedError) Error() string { return e.Message }

// Refused returns a RefusedError.
func Refused(format string, args ...any) *RefusedError {
	return &RefusedError{Message: fmt.Sprintf(format, args...)}
}

// A hiddenError is an error without the credentials in its text. It can be compared by
// errors.Is, but not unwrapped.
type hiddenError struct {
	text string
	err  error
}

func (e *hiddenError) Error() string        { return e.text }
func (e *hiddenError) Is(target error) bool { return errors.Is(e.err, target) }

// redactError removes the credentials from the text of an error.
func redactError(err error, secrets *redact.Redactor) error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return &RefusedError{Message: secrets.String(refused.Message)}
	}
	return &hiddenError{text: secrets.String(err.Error()), err: err}
}

// during wraps an error with what was being done, except a RefusedError, whose message is a
// sentence.
func during(doing string, err error) error {
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return refused
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// printable returns text of a server as it may be quoted in a sentence.
func printable(s string) string {
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
