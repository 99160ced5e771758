package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	"github.com/deckhand-dev/deckhand/internal/shared/template"
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

// Arguments are the names of the arguments of tools, by the names of the tools. The arguments of a tool that is
// missing, or has nil, are not known.
type Arguments map[string][]string

// Warnings returns likely mistakes in rules that compile, in their order: a condition that is true for no tool, and a
// condition that reads an argument that no tool has, so that it can be decided for no call. Without tools, nothing is
// known and there are no warnings.
func Warnings(rules []Rule, tools ToolKinds, arguments Arguments) []*Error {
	env, err := environment()
	if err != nil || len(tools) == 0 {
		return nil
	}
	var out []*Error
	for i, r := range rules {
		if strings.TrimSpace(r.When) == "" {
			continue
		}
		parsed, issues := env.Compile(r.When)
		if issues.Err() != nil || review(parsed.NativeRep(), tools) != nil {
			continue // Compile says so
		}
		root := ast.NavigateAST(parsed.NativeRep())
		at, message := warningOf(root, candidates(r, tools, arguments, root))
		if message == "" {
			continue
		}
		where := parsed.NativeRep().SourceInfo().GetStartLocation(at.ID())
		out = append(out, &Error{Rule: i, Name: r.Name, Field: "when", Line: where.Line(), Column: where.Column() + 1, Message: message})
	}
	return out
}

// A candidate is a tool that a rule may apply to.
type candidate struct {
	name string // empty: any tool whose name begins with prefix and is not in the condition
	// prefix is the beginning of the names of these tools.
	prefix    string
	arguments []string
	isKnown   bool // arguments are all that it has
}

// lacks reports whether no call of the tool has an argument.
func (c candidate) lacks(argument string) bool {
	return c.isKnown && !slices.Contains(c.arguments, argument)
}

// areWithout reports whether no call of any of the tools has an argument.
func areWithout(tools []candidate, argument string) bool {
	return !slices.ContainsFunc(tools, func(c candidate) bool { return !c.lacks(argument) })
}

// candidates returns the tools that a rule may apply to, including tools that only its condition names.
func candidates(r Rule, tools ToolKinds, arguments Arguments, root ast.NavigableExpr) []candidate {
	about := tools.about(r.Tools)
	var out []candidate
	for _, name := range slices.Sorted(maps.Keys(about)) {
		prefix, open := strings.CutSuffix(name, "*")
		if !open {
			out = append(out, candidate{name: name, arguments: arguments[name], isKnown: arguments[name] != nil})
			continue
		}
		out = append(out, candidate{prefix: prefix})
		for _, literal := range ast.MatchDescendants(root, ast.KindMatcher(ast.LiteralKind)) {
			if named, ok := text(literal); ok && strings.HasPrefix(named, prefix) {
				out = append(out, candidate{name: named})
			}
		}
	}
	return out
}

// warningOf returns a likely mistake in a condition, and where; an empty message: there is none.
func warningOf(root ast.NavigableExpr, tools []candidate) (at ast.NavigableExpr, message string) {
	if root.Kind() == ast.LiteralKind || len(tools) == 0 {
		return nil, ""
	}
	if read, by := missingRead(root, tools); read != nil {
		return read, noArgument(argumentOf(read), by, "the condition cannot be decided for these calls")
	}
	if slices.ContainsFunc(tools, func(c candidate) bool { holds, _ := c.truth(root); return holds }) {
		return nil, ""
	}
	isMissing := func(e ast.NavigableExpr) bool {
		name := optionalArgument(e)
		return name != "" && areWithout(tools, name)
	}
	if missing := ast.MatchDescendants(root, isMissing); len(missing) > 0 {
		return missing[0], noArgument(optionalArgument(missing[0]), tools, "the rule never applies")
	}
	return root, "the condition is true for no tool of this Agent, so the rule never applies. For several tools write, for example, tool in ['Read', 'Write']"
}

// noArgument returns the message that tools have no argument of a name. It contains so, the consequence, and the
// arguments that they have.
func noArgument(name string, tools []candidate, so string) string {
	var have []string
	for _, c := range tools {
		have = append(have, c.arguments...)
	}
	slices.Sort(have)
	have = slices.Compact(have)
	who := "no tool that it matches has"
	if len(tools) == 1 {
		who = "the tool " + tools[0].name + " does not have"
	}
	message := fmt.Sprintf("%s the argument %s, so %s", who, shorten(name), so)
	if hint := template.Similar(name, have); hint != "" {
		return message + hint
	}
	const most = 10
	if len(have) > most {
		have = append(have[:most], "…")
	}
	if len(have) == 0 {
		return message
	}
	return fmt.Sprintf("%s; there are %s", message, strings.Join(have, ", "))
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
