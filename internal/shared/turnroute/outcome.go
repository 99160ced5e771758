package turnroute

import (
	"context"
	"math"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// An outcome is the value that a condition can have in any turn.
type outcome int

const (
	varies outcome = iota
	alwaysTrue
	neverTrue
)

func (o outcome) not() outcome {
	return map[outcome]outcome{alwaysTrue: neverTrue, neverTrue: alwaysTrue}[o]
}

// ranges are the least and the largest value of each variable.
var ranges = map[string][2]float64{
	variableTurn: {1, math.Inf(1)}, variableInput: {0, math.Inf(1)},
	variableSteps: {0, 1}, variableTokens: {0, 1}, variableCost: {0, 1},
}

// outcomeOf returns which values the condition can have. An expression without variables has one value, or always
// fails; for others, the ranges of their variables decide, as far as possible.
func (c *Condition) outcomeOf(a *ast.AST) (outcome, error) {
	reads := false
	ast.PreOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) { reads = reads || nameOf(a, e) != "" }))
	if reads {
		return outcomeOf(a, a.Expr()), nil
	}
	holds, err := c.Holds(context.Background(), Turn{Number: 1})
	return isTrue(holds), err
}

func outcomeOf(a *ast.AST, e ast.Expr) outcome {
	if e.Kind() == ast.LiteralKind {
		return isTrue(e.AsLiteral().Value() == true)
	}
	if e.Kind() != ast.CallKind {
		return varies
	}
	args := e.AsCall().Args()
	switch function := e.AsCall().FunctionName(); function {
	case operators.LogicalNot:
		return outcomeOf(a, args[0]).not()
	case operators.LogicalOr:
		return either(outcomeOf(a, args[0]), outcomeOf(a, args[1]))
	case operators.LogicalAnd:
		return either(outcomeOf(a, args[0]).not(), outcomeOf(a, args[1]).not()).not()
	default:
		return comparisonOutcome(a, function, args)
	}
}

func isTrue(is bool) outcome {
	return map[bool]outcome{true: alwaysTrue, false: neverTrue}[is]
}

// either returns the outcome of a disjunction.
func either(x, y outcome) outcome {
	switch {
	case x == alwaysTrue || y == alwaysTrue:
		return alwaysTrue
	case x == neverTrue && y == neverTrue:
		return neverTrue
	}
	return varies
}

// mirrored are the comparisons with their sides exchanged.
var mirrored = map[string]string{
	operators.Less: operators.Greater, operators.LessEquals: operators.GreaterEquals,
	operators.Greater: operators.Less, operators.GreaterEquals: operators.LessEquals,
	operators.Equals: operators.Equals, operators.NotEquals: operators.NotEquals,
}

// comparisonOutcome returns the outcome of a comparison of a variable with a number.
func comparisonOutcome(a *ast.AST, function string, args []ast.Expr) outcome {
	if mirrored[function] == "" || len(args) != 2 {
		return varies
	}
	if nameOf(a, args[0]) == "" {
		function, args = mirrored[function], []ast.Expr{args[1], args[0]}
	}
	bounds, known := ranges[nameOf(a, args[0])]
	n, isNumber := numberOf(args[1])
	if !known || !isNumber {
		return varies
	}
	least, most := bounds[0], bounds[1]
	switch function {
	case operators.Less:
		return within(most < n, least >= n)
	case operators.LessEquals:
		return within(most <= n, least > n)
	case operators.Greater:
		return within(least > n, most <= n)
	case operators.GreaterEquals:
		return within(least >= n, most < n)
	case operators.Equals:
		return within(false, n < least || n > most)
	default: // not equal
		return within(n < least || n > most, false)
	}
}

// within returns the outcome of a comparison that is true, or false, over a whole range.
func within(always, never bool) outcome {
	switch {
	case always:
		return alwaysTrue
	case never:
		return neverTrue
	}
	return varies
}

// nameOf returns the variable that an expression reads, or an empty name.
func nameOf(a *ast.AST, e ast.Expr) string {
	if ref, found := a.ReferenceMap()[e.ID()]; found {
		if _, is := ranges[ref.Name]; is {
			return ref.Name
		}
	}
	return ""
}

func numberOf(e ast.Expr) (float64, bool) {
	if e.Kind() != ast.LiteralKind {
		return 0, false
	}
	switch n := e.AsLiteral().Value().(type) {
	case int64:
		return float64(n), true
	case uint64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
