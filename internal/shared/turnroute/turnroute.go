// Package turnroute decides which route of an Agent answers a turn.
//
// A condition is a CEL expression over five numbers, which always have a value and
// whose ranges are known. [Check] finds routes that can never be used, and conditions
// that do not compile, before anything runs. [Condition.Holds] evaluates one before a
// turn. Lint, the operator and the runner use the same functions.
//
// CEL is set up when the first condition is compiled.
package turnroute

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/deckhand-dev/deckhand/internal/shared/celhints"
)

// MaxWhen is how many characters a condition may have.
const MaxWhen = 512

// maxCost bounds an evaluation, in CEL's units. A comparison costs about 2.
const maxCost = 10_000

// A Turn has the variables of conditions.
type Turn struct {
	// Number is the turn of the session, from 1.
	Number int64
	// EstimatedTokens is the input of the next request.
	EstimatedTokens int64
	Left            Left
}

// Left is the part of each limit that is left, from 0 to 1; 1 if there is no limit.
type Left struct{ Steps, Tokens, Cost float64 }

// The variables of a condition.
const (
	variableTurn   = "turn"
	variableInput  = "estimatedTokens"
	variableSteps  = "budgetLeft.steps"
	variableTokens = "budgetLeft.tokens"
	variableCost   = "budgetLeft.cost"
)

// values returns the variables of a turn.
func (t Turn) values() map[string]any {
	return map[string]any{
		variableTurn: t.Number, variableInput: t.EstimatedTokens,
		variableSteps: t.Left.Steps, variableTokens: t.Left.Tokens, variableCost: t.Left.Cost,
	}
}

// environment is the environment of conditions. It is created once, and only if there is a condition. It has no macros,
// because there is nothing to iterate over.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	env, err := cel.NewCustomEnv(
		cel.StdLib(), cel.ClearMacros(),
		cel.ParserRecursionLimit(50),
		cel.ParserExpressionSizeLimit(4*MaxWhen),
		cel.CrossTypeNumericComparisons(true),
		cel.Variable(variableTurn, cel.IntType),
		cel.Variable(variableInput, cel.IntType),
		cel.Variable(variableSteps, cel.DoubleType),
		cel.Variable(variableTokens, cel.DoubleType),
		cel.Variable(variableCost, cel.DoubleType),
	)
	if err != nil {
		return nil, fmt.Errorf("setting up CEL: %w", err)
	}
	return env, nil
})

// A Condition selects turns.
type Condition struct {
	program cel.Program
	result  outcome
}

// An Error describes what is wrong with a condition, and what to write.
type Error struct {
	Line, Column int // from 1
	Message      string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Line > 1 {
		return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
	}
	return fmt.Sprintf("column %d: %s", e.Column, e.Message)
}

// Compile compiles a condition. Its errors are of type [*Error].
func Compile(when string) (*Condition, error) {
	if n := len([]rune(when)); n > MaxWhen {
		return nil, &Error{1, MaxWhen + 1, fmt.Sprintf("a condition has at most %d characters, and this has %d; make several routes of it", MaxWhen, n)}
	}
	env, err := environment()
	if err != nil {
		return nil, &Error{1, 1, err.Error()}
	}
	checked, issues := env.Compile(when)
	if issues.Err() != nil {
		return nil, explain(when, issues.Errors()[0])
	}
	if out := checked.OutputType(); !out.IsExactType(cel.BoolType) {
		return nil, &Error{1, 1, fmt.Sprintf("this is a value of type %s, not a condition; compare it, as in estimatedTokens > 100000", cel.FormatCELType(out))}
	}
	program, err := env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxCost), cel.InterruptCheckFrequency(100))
	if err != nil {
		return nil, &Error{1, 1, fmt.Sprintf("it fails in each turn: %v", err)}
	}
	c := &Condition{program: program}
	if c.result, err = c.outcomeOf(checked.NativeRep()); err != nil {
		return nil, &Error{1, 1, fmt.Sprintf("it fails in each turn: %v", err)}
	}
	return c, nil
}

// Holds reports whether the condition selects a turn.
func (c *Condition) Holds(ctx context.Context, t Turn) (bool, error) {
	out, _, err := c.program.ContextEval(ctx, t.values())
	switch {
	case err != nil && strings.Contains(err.Error(), "actual cost limit exceeded"):
		return false, errors.New("it costs too much to evaluate")
	case err != nil:
		return false, err //nolint:wrapcheck // the caller names the route
	}
	holds, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("its value is of type %s, neither true nor false", out.Type().TypeName())
	}
	return bool(holds), nil
}

// explain explains an error of CEL, with what to write.
func explain(when string, e *cel.Error) *Error {
	wrong := &Error{Line: max(e.Location.Line(), 1), Column: max(e.Location.Column()+1, 1)}
	wrong.Message = celhints.Append(celhints.Message(e), when, wrong.Line, wrong.Column, hints)
	return wrong
}

const variablesHint = "a condition reads turn, estimatedTokens, budgetLeft.steps, budgetLeft.tokens and budgetLeft.cost"

// hints are tried in their order.
var hints = append(append([]celhints.Hint{
	{Message: "token recognition", After: "$", Text: "values have no mark here: write budgetLeft.cost"},
	{Message: "token recognition", After: "%", Text: "budgetLeft is from 0 to 1: write 0.2 for 20 %"},
}, celhints.Syntax...), []celhints.Hint{
	{Message: "mismatched input", Text: "conditions are joined by && and ||, and numbers have no unit: write 100000"},
	{Message: "extraneous input", Text: "conditions are joined by && and ||, and numbers have no unit: write 100000"},
	{Message: "undeclared reference to", After: "(", Text: "compare the variables with numbers, as in turn > 10"},
	{Message: "undeclared reference to 'budgetLeft'", Text: "write budgetLeft.steps, budgetLeft.tokens or budgetLeft.cost"},
	{Message: "undeclared reference", Text: variablesHint},
	{Message: "does not support field selection", Text: variablesHint},
	{Message: "no matching overload for '_&&_'", Text: "both sides must be conditions"},
	{Message: "no matching overload for '_||_'", Text: "both sides must be conditions"},
	{Message: "no matching overload for '!_'", Text: "only a condition can be negated"},
	{Message: "no matching overload for '_+_'", Text: mixedHint},
	{Message: "no matching overload for '_-_'", Text: mixedHint},
	{Message: "no matching overload for '_*_'", Text: mixedHint},
	{Message: "no matching overload for '_/_'", Text: mixedHint},
	{Message: "overload for '_==_' applied to '(double, int)'", Text: equalHint},
	{Message: "overload for '_==_' applied to '(int, double)'", Text: equalHint},
	{Message: "overload for '_!=_' applied to '(double, int)'", Text: equalHint},
	{Message: "overload for '_!=_' applied to '(int, double)'", Text: equalHint},
	{Message: "no matching overload", Text: "compare numbers, without quotes: write turn > 10 or budgetLeft.cost < 0.2"},
}...)

const equalHint = "budgetLeft is a number with a point: write 1.0 in place of 1"

const mixedHint = "calculate with numbers of one kind: double(turn), or 2.0 in place of 2"

// A RouteError reports a route that does not compile or can never be used.
type RouteError struct {
	Route int // its place among the routes for turns, from 0
	// When reports that the error is in the condition and not in the order of routes.
	When bool
	Err  error
}

// Error implements error.
func (e *RouteError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the condition.
func (e *RouteError) Unwrap() error { return e.Err }

// Check returns the first error of routes for turns, given their conditions in order; nil:
// each compiles and can be used. An empty condition always holds. name names a route by its
// place.
func Check(conditions []string, name func(route int) string) *RouteError {
	always := -1
	earlier := map[string]int{}
	for i, when := range conditions {
		text := strings.Join(strings.Fields(when), " ")
		same, repeated := earlier[text]
		switch {
		case always >= 0:
			return &RouteError{Route: i, Err: fmt.Errorf("this route is never used: %s applies to every turn. Move it to the end, or give it a when that is not always true", name(always))}
		case repeated:
			return &RouteError{Route: i, Err: fmt.Errorf("this route is never used: %s has the same when. Remove one of the two, or change its when", name(same))}
		}
		earlier[text] = i
		result, err := resultOf(when)
		switch {
		case err != nil:
			return &RouteError{Route: i, When: true, Err: err}
		case result == neverTrue:
			return &RouteError{Route: i, When: true, Err: fmt.Errorf("it is true in no turn, so this route is never used: turn begins at 1, estimatedTokens at 0, and budgetLeft is from 0 to 1, the part of the limit that is left. Correct the expression, or remove the route")}
		case result == alwaysTrue:
			always = i
		}
	}
	return nil
}

func resultOf(when string) (outcome, error) {
	if when == "" {
		return alwaysTrue, nil
	}
	c, err := Compile(when)
	if err != nil {
		return varies, err
	}
	return c.result, nil
}

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
