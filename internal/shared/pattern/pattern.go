// Package pattern bounds the memory of regular expressions that users write. A short expression may be a large program:
// .{1000} has a thousand instructions, and package regexp compiles up to some millions, of 40 bytes each.
package pattern

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

// MaxInstructions bounds the program of one expression, which is about half a megabyte.
const MaxInstructions = 10_000

// A SizeError reports an expression whose program is too large.
type SizeError struct {
	Instructions int
	Max          int
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("it compiles to about %d instructions; at most %d are allowed. Use smaller numbers in {}, or fewer of them", e.Instructions, e.Max)
}

// Compile compiles an expression whose program has at most [MaxInstructions]. Its error is a
// [*SizeError], or that of package regexp.
func Compile(expression string) (*regexp.Regexp, error) {
	if err := Check(expression); err != nil {
		return nil, err
	}
	return regexp.Compile(Source(expression)) //nolint:wrapcheck // as package regexp does
}

// maxOnePassRunes bounds the runes of an expression that package regexp may compile to a one-pass program, in which
// each of up to a thousand instructions has a copy of some of them.
const maxOnePassRunes = 16

// Source returns an expression that matches the same texts, for code that compiles it with package regexp and not with
// [Compile]. Package regexp makes one-pass programs of expressions that begin with ^, in which the repetitions of a
// class of characters do not share its ranges: ^\pL{980}$ takes 8 MB.
func Source(expression string) string {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil || runes(parsed) <= maxOnePassRunes {
		return expression
	}
	return "(?:)" + expression // which begins with nothing, not with ^
}

// runes counts the runes of the literals and of the ranges of an expression.
func runes(r *syntax.Regexp) int {
	n := len(r.Rune)
	for _, sub := range r.Sub {
		n += runes(sub)
	}
	return n
}

// Check returns the error that [Compile] returns, without compiling the expression.
func Check(expression string) error {
	n, err := Instructions(expression)
	if err != nil {
		return err
	}
	if n > MaxInstructions {
		return &SizeError{Instructions: n, Max: MaxInstructions}
	}
	return nil
}

// Instructions estimates the size of the program of an expression without compiling it. The ranges of a class of
// characters are counted once, in units of the size of an instruction, because repetitions share them in programs of
// [Compile] and of [Source].
func Instructions(expression string) (int, error) {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return 0, err //nolint:wrapcheck // as package regexp does
	}
	return instructions(parsed) + ranges(parsed), nil
}

// instructions counts the instructions of an expression, with its repetitions expanded. The count
// does not overflow: package syntax parses no expression whose program would take 128 MB.
func instructions(r *syntax.Regexp) int {
	n := 0
	for _, sub := range r.Sub {
		n += instructions(sub)
	}
	switch r.Op {
	case syntax.OpLiteral:
		return len(r.Rune)
	case syntax.OpRepeat:
		optional := max(r.Max-r.Min, 1) // each an instruction of its own
		return n*max(r.Min, r.Max, 1) + optional
	case syntax.OpConcat:
		return n
	default:
		return n + 1
	}
}

// runesOfInstruction is how many runes take the memory of an instruction.
const runesOfInstruction = 10

func ranges(r *syntax.Regexp) int {
	n := 0
	if r.Op == syntax.OpCharClass {
		n = len(r.Rune) / runesOfInstruction
	}
	for _, sub := range r.Sub {
		n += ranges(sub)
	}
	return n
}
