package policy

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// truth reports whether an expression may be true for calls of a tool, and whether it may be false. It uses the name of
// the tool and the names of its arguments.
func (c candidate) truth(e ast.NavigableExpr) (holds, fails bool) {
	children := e.Children()
	switch functionOf(e) {
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
			is := slices.Contains(names, c.name) != (functionOf(e) == operators.NotEquals)
			return is, !is
		}
	case functionStartsWith:
		if begin, ok := text(children[1]); ok && named(children[0]) {
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
	isTest := e.Kind() == ast.SelectKind || functionOf(e) == operators.In || functionOf(e) == functionHasValue
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
	case functionOf(e) == operators.In && isArgs(children[1]):
		name, _ := text(children[0])
		return name
	case functionOf(e) == functionHasValue, functionOf(e) == "orValue":
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
	d.function = functionOf(e)
	switch d.function {
	case operators.Equals, operators.NotEquals:
		if _, isLiteral := text(sides[0]); isLiteral {
			slices.Reverse(sides)
		}
	case operators.In, functionStartsWith, functionEndsWith, functionContains, functionMatches:
	default:
		return d, false
	}
	d.of, d.literals = sides[0], items(sides[1])
	if functionOf(d.of) == functionLower {
		d.lower, d.of = true, d.of.Children()[0]
	}
	_, areLiterals := texts(d.literals)
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
	switch functionOf(e) {
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
	return e.Kind() == ast.SelectKind || functionOf(e) == operators.Index
}
