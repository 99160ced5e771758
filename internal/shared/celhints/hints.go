// Package celhints explains errors of CEL's parser and checker: what to write instead.
package celhints

import (
	"strings"

	"github.com/google/cel-go/common"
)

// A Hint is what to write instead. It fits an error if the message contains Message,
// and the line ends in Before ahead of the error and continues with After. Empty
// fields fit every error.
type Hint struct{ Message, Before, After, Text string }

func (h Hint) fits(message, before, after string) bool {
	return strings.Contains(message, h.Message) && strings.HasSuffix(strings.TrimRight(before, " "), h.Before) && strings.HasPrefix(after, h.After)
}

// Syntax has hints for syntax errors that do not depend on the variables of an expression. Put more specific hints
// before it.
var Syntax = []Hint{
	{Message: "token recognition", After: "&", Text: "write &&"},
	{Message: "token recognition", After: "|", Text: "write ||"},
	{Message: "token recognition", After: "=", Text: "write =="},
	{Message: "token recognition", After: `"`, Text: "close the quotes"},
	{Message: "token recognition", After: "'", Text: "close the quotes"},
	{Message: "mismatched input", After: "and ", Text: "write &&"},
	{Message: "mismatched input", After: "or ", Text: "write ||"},
	{Message: "extraneous input", After: "and ", Text: "write &&"},
	{Message: "extraneous input", After: "or ", Text: "write ||"},
	{Message: "input", Before: "not", Text: "write !"},
	{Message: "input the end", Text: "the expression is incomplete"},
}

// Message returns CEL's message without the parts that only developers of CEL need.
func Message(e *common.Error) string {
	message := strings.TrimPrefix(e.Message, "Syntax error: ")
	message, _, _ = strings.Cut(message, " expecting ") // often a list of all tokens
	message = strings.ReplaceAll(message, " (in container '')", "")
	return strings.ReplaceAll(message, "'<EOF>'", "the end")
}

// Append appends the text of the first hint that fits to the message of an error at a
// position, which counts from 1.
func Append(message, text string, line, column int, hints []Hint) string {
	before, after := SplitLine(text, line, column)
	for _, h := range hints {
		if h.fits(message, before, after) {
			return message + "; " + h.Text
		}
	}
	return message
}

// SplitLine returns the parts of a line before and after a column, in characters.
func SplitLine(text string, line, column int) (before, after string) {
	lines := strings.Split(text, "\n")
	if line > len(lines) {
		return "", ""
	}
	runes := []rune(lines[line-1])
	at := min(column-1, len(runes))
	return string(runes[:at]), string(runes[at:])
}
