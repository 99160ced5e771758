package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/deckhand-dev/deckhand/internal/shared/policy/tree"
)

// A Former is a tool that had another name.
type Former struct {
	Was, Is string
	// IsThere reports that the agent has the tool, IsTaken that another tool has the former name now.
	IsThere, IsTaken bool
}

// FormerOf returns the former names that a rule must not use. former has the former names of tools, names the names of
// the tools of an agent and of the agents that it can call. A tool may have the former name of a tool that the agent
// does not have.
func FormerOf(former map[string]string, names []string) []Former {
	var all []Former
	for _, is := range slices.Sorted(maps.Keys(former)) {
		f := Former{former[is], is, slices.Contains(names, is), slices.Contains(names, former[is])}
		if f.IsThere || !f.IsTaken {
			all = append(all, f)
		}
	}
	return all
}

// advice returns what to write instead of the former name. A tool of a custom runner, which is not known here, may have
// that name.
func (f Former) advice() string {
	switch {
	case f.IsTaken:
		return fmt.Sprintf("write '%s', and give the other tool that is called %s another name", f.Is, f.Was)
	case !f.IsThere:
		return fmt.Sprintf("write '%s'. A tool of your own must not be called %s", f.Is, f.Was)
	}
	return fmt.Sprintf("write '%s'", f.Is)
}

// CheckFormerNames returns an [*Error] for the first rule whose meaning has changed with the names of tools. Such a
// rule compares the variable tool with a former name, or has a test that is true only for the former name, such as
// tool.startsWith('sh'), and would deny nothing now; or a test that depends on more than the tool, which may do so.
func CheckFormerNames(rules []Rule, all []Former) error {
	for i, r := range rules {
		if e := formerName(r, all); e != nil {
			e.Rule, e.Name = i, r.Name
			return e
		}
	}
	return nil
}

func formerName(r Rule, all []Former) *Error {
	if strings.TrimSpace(r.When) == "" {
		return nil
	}
	env, err := environment()
	if err != nil {
		return &Error{Field: "when", Message: err.Error()}
	}
	parsed, issues := env.Compile(r.When)
	if issues.Err() != nil {
		return nil //nolint:nilerr // Compile says so
	}
	if e := writtenFormerName(parsed.NativeRep(), all); e != nil {
		return e
	}
	return testOfFormerName(env, parsed, all)
}

// mayBeFormer finds a former name in a test that does not depend on the name of the tool only, such as [tool,
// agent.name] == ['shell', 'lead'].
func mayBeFormer(parsed *cel.Ast, f Former, was, is map[int64]any) *Error {
	contains := func(e ast.NavigableExpr) bool {
		written, is := tree.Text(e)
		return is && slices.Contains(strings.FieldsFunc(written, outsideName), f.Was)
	}
	for _, literal := range ast.MatchDescendants(ast.NavigateAST(parsed.NativeRep()), contains) {
		test := testAround(literal)
		if readsTool(test) && (!isKnown(was[test.ID()]) || !isKnown(is[test.ID()])) {
			return errorAt(parsed.NativeRep(), literal, fmt.Sprintf("the tool %s is called %s: %s", f.Was, f.Is, f.advice()))
		}
	}
	return nil
}

// outsideName reports whether a name of a tool cannot have a character.
func outsideName(r rune) bool {
	return !strings.ContainsRune("_-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", r)
}

// testAround returns the smallest test that an expression is part of.
func testAround(e ast.NavigableExpr) ast.NavigableExpr {
	for e.Type().Kind() != types.BoolKind {
		parent, is := e.Parent()
		if !is || isOperand(e, parent) {
			break
		}
		e = parent
	}
	return e
}

// isOperand reports whether an expression is an operand of a connective that is a test itself.
func isOperand(e, connective ast.NavigableExpr) bool {
	switch tree.Function(connective) {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot:
		return true
	case operators.Conditional:
		return connective.Children()[0].ID() == e.ID()
	}
	return false
}

func isKnown(value any) bool { return value == types.True || value == types.False }

// testOfFormerName finds a test that is true only for the former name of a tool.
func testOfFormerName(env *cel.Env, parsed *cel.Ast, all []Former) *Error {
	tests := ast.MatchDescendants(ast.NavigateAST(parsed.NativeRep()), isTest)
	if len(tests) == 0 {
		return nil
	}
	for _, f := range all {
		was, is := valuesFor(env, parsed, f.Was), valuesFor(env, parsed, f.Is)
		if e := mayBeFormer(parsed, f, was, is); e != nil {
			return e
		}
		for _, e := range tests {
			if f.IsThere && onlyFormer(e, was[e.ID()], is[e.ID()]) {
				return errorAt(parsed.NativeRep(), e, fmt.Sprintf("this holds for %s, as the tool %s was called, and not for %s: write it for the name %s", f.Was, f.Is, f.Is, f.Is))
			}
		}
	}
	return nil
}

// onlyFormer reports whether a test is true only for the former name, by its values for both names.
func onlyFormer(e ast.NavigableExpr, was, is any) bool {
	if tree.Function(e) == operators.NotEquals {
		was, is = is, was
	}
	return was == types.True && is == types.False
}

// isTest reports whether an expression may be a test of the name. Direct comparisons of the name were checked before.
func isTest(e ast.NavigableExpr) bool {
	switch tree.Function(e) {
	case "", operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional:
		return false
	}
	compared := comparedWithTool(e)
	_, areWritten := tree.Texts(compared)
	return (len(compared) == 0 || !areWritten) && readsTool(e)
}

// readsTool reports whether an expression has the variable tool in it.
func readsTool(e ast.NavigableExpr) bool {
	return len(ast.MatchDescendants(e, func(e ast.NavigableExpr) bool { return tree.IsTool(e) })) > 0
}

func errorAt(a *ast.AST, e ast.Expr, message string) *Error {
	where := a.SourceInfo().GetStartLocation(e.ID())
	return &Error{Field: "when", Line: where.Line(), Column: where.Column() + 1, Message: message}
}

// writtenFormerName finds a former name with which the variable tool is compared, directly or in a list.
func writtenFormerName(a *ast.AST, all []Former) *Error {
	compares := func(e ast.NavigableExpr) bool { return len(writtenNames(e)) > 0 }
	for _, e := range ast.MatchDescendants(ast.NavigateAST(a), compares) {
		for _, literal := range writtenNames(e) {
			name, _ := tree.Text(literal)
			if i := slices.IndexFunc(all, func(f Former) bool { return f.Was == name }); i >= 0 {
				return errorAt(a, literal, fmt.Sprintf("the tool %s is called %s: %s", name, all[i].Is, all[i].advice()))
			}
		}
	}
	return nil
}

// writtenNames returns the expressions with which an expression compares the variable tool. In a macro, as in
// ['Shell'].exists(t, t == tool), these are all literals.
func writtenNames(e ast.NavigableExpr) []ast.NavigableExpr {
	if e.Kind() == ast.ComprehensionKind && readsTool(e) {
		return ast.MatchDescendants(e, ast.KindMatcher(ast.LiteralKind))
	}
	return comparedWithTool(e)
}

// comparedWithTool returns the expressions with which an expression compares the variable tool.
func comparedWithTool(e ast.NavigableExpr) []ast.NavigableExpr {
	switch tree.Function(e) {
	case operators.Equals, operators.NotEquals, operators.In:
	default:
		return nil
	}
	sides := e.Children()
	if tree.IsTool(sides[1]) {
		slices.Reverse(sides)
	}
	if !tree.IsTool(sides[0]) {
		return nil
	}
	return tree.Items(sides[1])
}

// unknowns are the variables of a condition besides tool.
var unknowns = []string{"args", "shell", "agent.name", "agent.depth", "run.namespace", "run.name", "run.user", "run.labels"}

// valuesFor returns the values of the parts of a condition if only the name of the tool is known, by the ids of the
// expressions; none, if it cannot be evaluated.
func valuesFor(env *cel.Env, parsed *cel.Ast, tool string) map[int64]any {
	patterns := make([]*cel.AttributePatternType, len(unknowns))
	for i, name := range unknowns {
		patterns[i] = cel.AttributePattern(name)
	}
	vars, err := cel.PartialVars(newInput(Call{Tool: tool}), patterns...)
	program, wrong := env.Program(parsed, append(programOptions(), cel.EvalOptions(cel.OptPartialEval|cel.OptExhaustiveEval|cel.OptTrackState))...)
	if err != nil || wrong != nil {
		return nil
	}
	values := map[int64]any{}
	_, details, _ := program.Eval(vars)
	if details == nil || details.State() == nil {
		return nil
	}
	for _, id := range details.State().IDs() {
		values[id], _ = details.State().Value(id)
	}
	return values
}

// WithNamesOfToday returns a condition with current names where the variable tool is compared with former names. Other
// tests of the name are unchanged: CheckFormerNames finds them.
func WithNamesOfToday(when string, all []Former) string {
	env, err := environment()
	if err != nil {
		return when
	}
	parsed, issues := env.Compile(when)
	if issues.Err() != nil {
		return when
	}
	now := comparedFormers(parsed.NativeRep(), all)
	source := []rune(when)
	for _, at := range slices.Backward(slices.Sorted(maps.Keys(now))) {
		was := []rune(now[at].Was)
		if begin := at + 1; begin+len(was) < len(source) && slices.Equal(source[begin:begin+len(was)], was) { // else it is a raw text
			source = slices.Concat(source[:begin], []rune(now[at].Is), source[begin+len(was):])
		}
	}
	return string(source)
}

// comparedFormers returns the tools whose former names the variable tool is compared with, by the positions of
// the names.
func comparedFormers(a *ast.AST, all []Former) map[int]Former {
	out := map[int]Former{}
	for _, e := range ast.MatchDescendants(ast.NavigateAST(a), func(ast.NavigableExpr) bool { return true }) {
		for _, literal := range comparedWithTool(e) {
			name, _ := tree.Text(literal)
			at, found := a.SourceInfo().GetOffsetRange(literal.ID())
			if i := slices.IndexFunc(all, func(f Former) bool { return f.Was == name }); i >= 0 && found {
				out[int(at.Start)] = all[i]
			}
		}
	}
	return out
}
