package expr

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/deckhand-dev/deckhand/internal/shared/pattern"
)

// compilePattern compiles a pattern that is a literal.
func compilePattern(expression string) (*regexp.Regexp, error) {
	compiled, err := pattern.Compile(expression)
	if size, large := errors.AsType[*pattern.SizeError](err); large {
		return nil, fmt.Errorf("the pattern is too large: %w", size)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; the syntax is RE2, without look-around and back-references", err)
	}
	return compiled, nil
}

// isKept reports whether a compiled pattern is kept in memory together with its expression. A pattern
// whose program is much larger than its text is compiled for each call instead, at the cost of the
// call: a Workflow may have hundreds of expressions.
func isKept(expression string) bool {
	n, err := states(expression)
	return err == nil && n <= uint64(4*len(expression)+64)
}

// matches returns the function matches for a pattern that is a literal.
func matches(literal string) functions.FunctionOp {
	compiled, err := compilePattern(literal)
	return func(args ...ref.Val) ref.Val {
		s, ok := args[0].(types.String)
		switch {
		case err != nil:
			return types.WrapErr(err)
		case !ok:
			return types.MaybeNoSuchOverloadErr(args[0])
		}
		return types.Bool(compiled.MatchString(string(s)))
	}
}

// matching is the cost of matching a pattern: each character may be in each of its
// states.
func matching(v []ref.Val) uint64 {
	n, err := states(fmt.Sprint(v[1].Value()))
	switch {
	case err != nil:
		return 1 + length(v[1])/10 // compiling it fails
	case n > pattern.MaxInstructions:
		return MaxCost + 1
	}
	return 1 + n + (10+length(v[0]))*(4+n)/40
}

// findingAll is the cost of matching and of the result.
func findingAll(v []ref.Val) uint64 { return matching(v) + length(v[0]) }

// states estimates the number of states of a compiled pattern.
func states(expression string) (uint64, error) {
	n, err := pattern.Instructions(expression)
	return uint64(n), err //nolint:gosec // a count is not negative
}
