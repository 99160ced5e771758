package expr

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"

	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// maxStates is the maximum size of a pattern that is a literal, with its repetitions
// expanded.
const maxStates = 10_000

// compilePattern compiles a pattern that is a literal.
func compilePattern(pattern string) (*regexp.Regexp, error) {
	if n, err := states(pattern); err == nil && n > maxStates {
		return nil, errors.New("the pattern repeats too much; use smaller numbers in {}")
	}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("%w; the syntax is RE2, without look-around and back-references", err)
	}
	return compiled, nil
}

// matches returns the function matches for a pattern that is a literal.
func matches(literal ref.Val) functions.FunctionOp {
	pattern, err := compilePattern(fmt.Sprint(literal.Value()))
	return func(args ...ref.Val) ref.Val {
		s, ok := args[0].(types.String)
		switch {
		case err != nil:
			return types.WrapErr(err)
		case !ok:
			return types.MaybeNoSuchOverloadErr(args[0])
		}
		return types.Bool(pattern.MatchString(string(s)))
	}
}

// matching is the cost of matching a pattern: each character may be in each of its
// states.
func matching(v []ref.Val) uint64 {
	pattern, _ := v[1].(types.String)
	n, err := states(string(pattern))
	if err != nil {
		return 1 + length(pattern)/10 // compiling it fails
	}
	return 1 + n + (10+length(v[0]))*(4+n)/40
}

// findingAll is the cost of matching and of the result.
func findingAll(v []ref.Val) uint64 { return matching(v) + length(v[0]) }

// states estimates the number of states of a compiled pattern.
func states(pattern string) (uint64, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	return statesOf(parsed), nil
}

func statesOf(r *syntax.Regexp) uint64 {
	n := uint64(1 + len(r.Rune))
	for _, sub := range r.Sub {
		n += statesOf(sub)
	}
	if r.Op == syntax.OpRepeat {
		n *= uint64(max(r.Min, r.Max, 1))
	}
	return min(n, math.MaxInt32)
}
