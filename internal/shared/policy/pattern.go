package policy

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"

	"github.com/deckhand-dev/deckhand/internal/shared/pattern"
)

// maxPatterns bounds the instructions of all patterns of a policy: some megabytes.
const maxPatterns = 5 * pattern.MaxInstructions

// A patternValidator checks patterns that are literals, before any of them is compiled.
type patternValidator struct{}

// Name implements [cel.ASTValidator].
func (patternValidator) Name() string { return "deckhand.validator.matches" }

// Validate implements [cel.ASTValidator].
func (patternValidator) Validate(_ *cel.Env, _ cel.ValidatorConfig, a *ast.AST, issues *cel.Issues) {
	for _, literal := range patternLiterals(a) {
		expression, _ := text(literal)
		err := pattern.Check(expression)
		if size, large := errors.AsType[*pattern.SizeError](err); large {
			issues.ReportErrorAtID(literal.ID(), "the pattern is too large: %s", size)
		} else if err != nil {
			issues.ReportErrorAtID(literal.ID(), "invalid matches argument")
		}
	}
}

// patternLiterals returns the patterns of a condition that are literals.
func patternLiterals(a *ast.AST) []ast.NavigableExpr {
	var all []ast.NavigableExpr
	for _, call := range ast.MatchDescendants(ast.NavigateAST(a), ast.FunctionMatcher(functionMatches)) {
		args := call.Children()
		if _, ok := text(args[len(args)-1]); ok {
			all = append(all, args[len(args)-1])
		}
	}
	return all
}

// patternSize counts the instructions of the patterns of a condition that are literals.
func patternSize(a *ast.AST) int {
	size := 0
	for _, literal := range patternLiterals(a) {
		expression, _ := text(literal)
		n, _ := pattern.Instructions(expression) // patternValidator refuses what is no pattern
		size += n
	}
	return size
}

// tooManyPatterns reports the rule whose patterns exceed the bound of the policy.
func tooManyPatterns(size int) *Error {
	return &Error{
		Field: "when",
		Message: fmt.Sprintf("the patterns of the rules so far compile to about %d instructions; at most %d are allowed. Use smaller numbers in {}, or fewer patterns",
			size, maxPatterns),
	}
}
