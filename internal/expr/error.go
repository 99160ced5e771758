package expr

import (
	"fmt"
	"strings"
)

// An Error says what is wrong with an expression, and where.
type Error struct {
	// Expression is its text.
	Expression string
	// Line and Column, in characters, count from 1 in the text as the user wrote
	// it, which is the whole of a template.
	Line, Column int
	Message      string
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

// A TooLongError says that a text outgrew its bound.
type TooLongError struct {
	// Expression is the one whose value was longest; empty where the words alone
	// are too long.
	Expression string
	// Bytes is how long the value of Expression is, or the words.
	Bytes int
	// Limit is what the whole may have.
	Limit int
}

func (e *TooLongError) Error() string {
	if e.Expression == "" {
		return fmt.Sprintf("the text has %d bytes without any values; at most %d are allowed", e.Bytes, e.Limit)
	}
	return fmt.Sprintf("the text has more than %d bytes; %d of them are the value of %q", e.Limit, e.Bytes, shorten(e.Expression))
}

// What errors repeat of an expression, and what they say in all, in characters.
const maxRepeated, maxMessage = 100, 1000

// shorten bounds what an error repeats.
func shorten(s string) string { return cut(strings.TrimSpace(s), maxRepeated) }

func cut(s string, most int) string {
	if runes := []rune(s[:min(len(s), 4*most)]); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}
