package policylint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/deckhand-dev/deckhand/internal/shared/policy"
	"github.com/deckhand-dev/deckhand/internal/shared/policy/tree"
	"github.com/deckhand-dev/deckhand/internal/shared/quote"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// Arguments are the names of the arguments of tools, by the names of the tools. The arguments of a tool that is
// missing, or has nil, are not known.
type Arguments map[string][]string

// Warnings returns likely mistakes in rules that compile, in their order: a condition that is true for no tool, and a
// condition that reads an argument that no tool has, so that it can be decided for no call. Without tools, nothing is
// known and there are no warnings.
func Warnings(rules []policy.Rule, tools policy.ToolKinds, arguments Arguments) []*policy.Error {
	if len(tools) == 0 {
		return nil
	}
	var out []*policy.Error
	for i, r := range rules {
		if strings.TrimSpace(r.When) == "" {
			continue
		}
		parsed, e := policy.Parse(r.When, tools)
		if e != nil {
			continue // Compile says so
		}
		root := ast.NavigateAST(parsed.NativeRep())
		at, message := warningOf(root, candidates(r, toolKinds(tools), arguments, root))
		if message == "" {
			continue
		}
		where := parsed.NativeRep().SourceInfo().GetStartLocation(at.ID())
		out = append(out, &policy.Error{Rule: i, Name: r.Name, Field: "when", Line: where.Line(), Column: where.Column() + 1, Message: message})
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
func candidates(r policy.Rule, tools toolKinds, arguments Arguments, root ast.NavigableExpr) []candidate {
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
			if named, ok := tree.Text(literal); ok && strings.HasPrefix(named, prefix) {
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
	message := fmt.Sprintf("%s the argument %s, so %s", who, quote.Clip(name, maxShown), so)
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

// truth reports whether an expression may be true for calls of a tool, and whether it may be false. It uses the name of
// the tool and the names of its arguments.
func (c candidate) truth(e ast.NavigableExpr) (holds, fails bool) {
	children := e.Children()
	switch tree.Function(e) {
	case operators.LogicalNot:
		holds, fails = c.truth(children[0])
		return fails, holds
	case operators.LogicalAnd:
		left, notLeft := c.truth(children[0])
		right, notRight := c.truth(children[1])
		return left && right, notLeft || notRight
	case operators.LogicalOr:
		left, notLeft := c.truth(children[0])
		right, notRight := c.truth(children[1])
		return left || right, notLeft && notRight
	case operators.Conditional:
		return c.truthOfChoice(children)
	case operators.Equals, operators.NotEquals, operators.In:
		if names, ok := toolNames(e); ok {
			is := slices.Contains(names, c.name) != (tree.Function(e) == operators.NotEquals)
			return is, !is
		}
	case functionStartsWith:
		if begin, ok := tree.Text(children[1]); ok && tree.IsTool(children[0]) {
			return c.begins(begin)
		}
	}
	return c.truthOfRest(e)
}

// truthOfChoice is truth for a condition with its alternatives.
func (c candidate) truthOfChoice(children []ast.NavigableExpr) (holds, fails bool) {
	yes, no := c.truth(children[0])
	for i, isChosen := range []bool{yes, no} {
		if isChosen {
			h, f := c.truth(children[i+1])
			holds, fails = holds || h, fails || f
		}
	}
	return holds, fails
}

// begins is truth for tool.startsWith.
func (c candidate) begins(with string) (holds, fails bool) {
	if c.name != "" {
		is := strings.HasPrefix(c.name, with)
		return is, !is
	}
	is := strings.HasPrefix(c.prefix, with)
	return is || strings.HasPrefix(with, c.prefix), !is
}

// truthOfRest is truth for a literal, and for an expression about an argument that the tool does not have.
func (c candidate) truthOfRest(e ast.NavigableExpr) (holds, fails bool) {
	if e.Kind() == ast.LiteralKind {
		is, ok := e.AsLiteral().(types.Bool)
		return bool(is) || !ok, !bool(is) || !ok
	}
	name := optionalArgument(e)
	isTest := e.Kind() == ast.SelectKind || tree.Function(e) == operators.In || tree.Function(e) == functionHasValue
	if name != "" && isTest && c.lacks(name) {
		return false, true
	}
	compared, ok := defaultComparison(e)
	if !ok || !c.lacks(argumentOf(compared.of)) {
		return true, true
	}
	is := compared.holds(compared.instead) != (compared.function == operators.NotEquals)
	return is, !is
}

// functionHasValue is the function of optional values that tests them.
const functionHasValue = "hasValue"

// optionalArgument returns the name of an argument that an expression reads and that may be absent: in has(args.x), 'x'
// in args, args.?x.hasValue() or args.?x.orValue('…'); empty: there is none.
func optionalArgument(e ast.NavigableExpr) string {
	children := e.Children()
	switch {
	case e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() && isArgs(children[0]):
		return e.AsSelect().FieldName()
	case tree.Function(e) == operators.In && isArgs(children[1]):
		name, _ := tree.Text(children[0])
		return name
	case tree.Function(e) == functionHasValue, tree.Function(e) == "orValue":
		return argumentOf(children[0])
	}
	return ""
}

// A defaulted comparison is one of args.?x.orValue('…') with literals.
type defaulted struct {
	comparison
	of      ast.NavigableExpr
	instead string // the default
}

// defaultComparison returns the comparison of a value with its default in an expression; false: it is none.
func defaultComparison(e ast.NavigableExpr) (d defaulted, ok bool) {
	sides := e.Children()
	if len(sides) != 2 {
		return d, false
	}
	d.function = tree.Function(e)
	switch d.function {
	case operators.Equals, operators.NotEquals:
		if _, isLiteral := tree.Text(sides[0]); isLiteral {
			slices.Reverse(sides)
		}
	case operators.In, functionStartsWith, functionEndsWith, functionContains, functionMatches:
	default:
		return d, false
	}
	d.of, d.literals = sides[0], tree.Items(sides[1])
	if tree.Function(d.of) == functionLower {
		d.lower, d.of = true, d.of.Children()[0]
	}
	_, areLiterals := tree.Texts(d.literals)
	d.instead, ok = defaultOf(d.of)
	return d, ok && areLiterals
}

// missingRead returns the first read of an argument that no tool has for whose calls the read matters, with these
// tools; nil: there is none. A read that allows absence does not count.
func missingRead(e ast.NavigableExpr, tools []candidate) (read ast.NavigableExpr, by []candidate) {
	if len(tools) == 0 {
		return nil, nil
	}
	if name := argumentOf(e); name != "" && isDirect(e) && areWithout(tools, name) {
		return e, tools
	}
	for i, child := range e.Children() {
		if read, by = missingRead(child, counting(e, i, tools)); read != nil {
			return read, by
		}
	}
	return nil, nil
}

// counting returns the tools for whose calls the value of a child of an expression matters.
func counting(e ast.NavigableExpr, child int, tools []candidate) []candidate {
	children := e.Children()
	switch tree.Function(e) {
	case operators.LogicalAnd:
		return where(children[1-child], true, tools)
	case operators.LogicalOr:
		return where(children[1-child], false, tools)
	case operators.Conditional:
		if child > 0 {
			return where(children[0], child == 1, tools)
		}
	}
	return tools
}

// where returns the tools for whose calls an expression may have the value.
func where(e ast.NavigableExpr, value bool, tools []candidate) []candidate {
	return slices.DeleteFunc(slices.Clone(tools), func(c candidate) bool {
		holds, fails := c.truth(e)
		return value && !holds || !value && !fails
	})
}

// isDirect reports whether an expression is args.x or args['x'] itself.
func isDirect(e ast.NavigableExpr) bool {
	return e.Kind() == ast.SelectKind || tree.Function(e) == operators.Index
}
