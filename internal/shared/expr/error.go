package expr

import (
	"fmt"
	"strings"
)

// An Error is an error of an expression with its position.
type Error struct {
	// Expression is its text.
	Expression string
	// Line and Column count characters from 1, in the expression or in the whole text
	// of a template.
	Line, Column int
	Message      string
	// Absent is set if the expression needs a value that may be absent.
	Absent bool
}

func (e *Error) Error() string {
	where := fmt.Sprintf("column %d", e.Column)
	if e.Line > 1 {
		where = fmt.Sprintf("line %d, column %d", e.Line, e.Column)
	}
	if e.Expression == "" {
		return where + ": " + e.Message
	}
	return fmt.Sprintf("%s of %q: %s", where, shorten(e.Expression), e.Message)
}

// At returns the error with its position in a text, in which the expression begins at a
// position.
func (e *Error) At(line, column int) *Error {
	moved := *e
	if moved.Line == 1 {
		moved.Column += column - 1
	}
	moved.Line += line - 1
	return &moved
}

// A TooLongError is the error of a text that exceeds its limit.
type TooLongError struct {
	// Expression is the expression with the longest value; empty if the text without
	// values is too long.
	Expression string
	// Bytes is the length of the value of Expression, or of the text without values.
	Bytes int
	// Limit is the maximum length of the text with its values.
	Limit int
}

func (e *TooLongError) Error() string {
	if e.Expression == "" {
		return fmt.Sprintf("the text has %d bytes without any values; at most %d are allowed", e.Bytes, e.Limit)
	}
	return fmt.Sprintf("the text has more than %d bytes; %d of them are the value of %q", e.Limit, e.Bytes, shorten(e.Expression))
}

// Maximum lengths of the expression in an error and of its message, in characters.
const maxQuoted, maxMessage = 100, 1000

// shorten returns an expression as errors quote it.
func shorten(s string) string { return cut(strings.TrimSpace(s), maxQuoted) }

func cut(s string, most int) string {
	if runes := []rune(s[:min(len(s), 4*most)]); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}
