package policy

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"

	"github.com/deckhand-dev/deckhand/internal/shared/celmacros"
	"github.com/deckhand-dev/deckhand/internal/shared/pattern"
	"github.com/deckhand-dev/deckhand/internal/shared/policy/tree"
)

const (
	// maxCost bounds the cost of deciding one rule, in CEL's units: about one unit for ten bytes of searched text.
	maxCost = 200_000
	// maxWords is how many words shell.runs takes after the program.
	maxWords = 7
)

// environment is the environment of conditions. It is created once, and only if there is a condition.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	optional, err := celmacros.Optional("the condition is too complex; make several rules of it")
	if err != nil {
		return nil, fmt.Errorf("setting up CEL: %w", err)
	}
	options := append([]cel.EnvOption{
		cel.StdLib(),
		cel.ParserRecursionLimit(50),
		cel.ParserExpressionSizeLimit(MaxWhen),
		cel.CrossTypeNumericComparisons(true),
		cel.ASTValidators(patternValidator{}, cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateComprehensionNestingLimit(2)),
		cel.Variable("tool", cel.StringType),
		cel.Variable("args", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("agent.name", cel.StringType),
		cel.Variable("agent.depth", cel.IntType),
		cel.Variable("run.namespace", cel.StringType),
		cel.Variable("run.name", cel.StringType),
		cel.Variable("run.user", cel.StringType),
		cel.Variable("run.labels", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("shell", shellType),
		cel.Function("opaque", cel.MemberOverload("shell_opaque", []*cel.Type{shellType}, cel.BoolType, cel.UnaryBinding(opaque))),
		cel.Function("runs", runsOverloads()...),
	}, optional...)
	texts, err := stringFunctions()
	if err != nil {
		return nil, fmt.Errorf("setting up CEL: %w", err)
	}
	env, err := cel.NewCustomEnv(append(options, texts)...)
	if err != nil {
		return nil, fmt.Errorf("setting up CEL: %w", err)
	}
	return env, nil
})

// stringFunctionNames are the functions of CEL's strings library for conditions: those whose time and memory are
// proportional to one existing text. CEL counts the cost of a call after it was made, so indexOf, replace, join and
// format are left out: one call of replace can produce a terabyte.
var stringFunctionNames = []string{"charAt", "lowerAscii", "split", "substring", "trim", "upperAscii"}

// stringFunctions declares the functions of stringFunctionNames.
func stringFunctions() (cel.EnvOption, error) {
	library, err := cel.NewCustomEnv(ext.Strings())
	if err != nil {
		return nil, err //nolint:wrapcheck // environment wraps it
	}
	all := library.Functions()
	declared := make([]*decls.FunctionDecl, 0, len(stringFunctionNames))
	for _, name := range stringFunctionNames {
		declared = append(declared, all[name])
	}
	return cel.FunctionDecls(declared...), nil
}

// programOptions bound the cost of deciding a condition.
func programOptions() []cel.ProgramOption {
	return []cel.ProgramOption{
		cel.CustomDecoratorV2(readLineEnds),
		cel.EvalOptions(cel.OptOptimize),
		cel.CostLimit(maxCost),
		cel.CostTracking(costs{}),
		cel.InterruptCheckFrequency(100),
	}
}

// runsOverloads take a program and some words.
func runsOverloads() []cel.FunctionOpt {
	var all []cel.FunctionOpt
	args := []*cel.Type{shellType}
	for n := range maxWords + 1 {
		args = append(slices.Clip(args), cel.StringType)
		all = append(all, cel.MemberOverload(fmt.Sprintf("shell_runs_%d", n), args, cel.BoolType, cel.FunctionBinding(runs)))
	}
	return all
}

func runs(args ...ref.Val) ref.Val {
	line, ok := args[0].(commandLine)
	if !ok {
		return types.MaybeNoSuchOverloadErr(args[0])
	}
	words := make([]string, 0, len(args))
	for _, a := range args[1:] {
		s, ok := a.(types.String)
		if !ok {
			return types.MaybeNoSuchOverloadErr(a)
		}
		words = append(words, string(s))
	}
	return types.Bool(line.read().Runs(words[0], words[1:]...))
}

func opaque(arg ref.Val) ref.Val {
	line, ok := arg.(commandLine)
	if !ok {
		return types.MaybeNoSuchOverloadErr(arg)
	}
	return types.Bool(line.read().Opaque())
}

// costs has the costs of the functions of this package.
type costs struct{}

// CallCost implements [interpreter.ActualCostEstimator].
func (costs) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	var cost uint64
	switch function {
	case "runs", "opaque":
		line, ok := args[0].(commandLine)
		if !ok {
			return nil
		}
		cost = 1 + uint64(line.read().Len()) //nolint:gosec // a length is not negative
	case operators.In:
		cost = 1 + size(args[1])
	case "charAt", "lowerAscii", "substring", "trim", "upperAscii":
		cost = 1 + size(args[0])/10
	case "split":
		cost = 1 + size(args[0])/10 + size(result)
	default:
		return nil
	}
	return &cost
}

// size returns the number of characters of a string, or of items of a list or map.
func size(v ref.Val) uint64 {
	sized, ok := v.(traits.Sizer)
	if !ok {
		return 0
	}
	n, _ := sized.Size().(types.Int)
	return uint64(max(n, 0))
}

// maxPatterns bounds the instructions of all patterns of a policy: some megabytes.
const maxPatterns = 5 * pattern.MaxInstructions

// A patternValidator checks patterns that are literals, before any of them is compiled.
type patternValidator struct{}

// Name implements [cel.ASTValidator].
func (patternValidator) Name() string { return "deckhand.validator.matches" }

// Validate implements [cel.ASTValidator].
func (patternValidator) Validate(_ *cel.Env, _ cel.ValidatorConfig, a *ast.AST, issues *cel.Issues) {
	for _, literal := range patternLiterals(a) {
		expression, _ := tree.Text(literal)
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
	for _, call := range ast.MatchDescendants(ast.NavigateAST(a), ast.FunctionMatcher("matches")) {
		args := call.Children()
		if _, ok := tree.Text(args[len(args)-1]); ok {
			all = append(all, args[len(args)-1])
		}
	}
	return all
}

// patternSize counts the instructions of the patterns of a condition that are literals.
func patternSize(a *ast.AST) int {
	size := 0
	for _, literal := range patternLiterals(a) {
		expression, _ := tree.Text(literal)
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
