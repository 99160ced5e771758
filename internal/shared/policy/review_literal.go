package policy

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// reviewLiterals refuses a literal that is compared with a canonical argument if no
// argument in canonical form equals it or begins with it: the comparison never
// holds, and the rule is not about the calls that it seems to be about. It accepts
// the literal where the comparison may be about a tool whose arguments are not
// known, and where an alternative to the comparison holds for the right literal.
func reviewLiterals(a *ast.AST, names []string, tools ToolKinds) *Error {
	r := literalReview{source: a.SourceInfo()}
	r.walk(ast.NavigateAST(a), position{tools: tools.about(names)})
	return r.found
}

// A position is where in a condition an expression is.
type position struct {
	tools ToolKinds // those for whose calls the expression counts
	// or are what can still make the condition true if the expression is always
	// false; and are what can still make it false if the expression is always true.
	or, and []alternative
}

// An alternative is an expression, and the tools for whose calls it decides.
type alternative struct {
	ast.NavigableExpr
	tools ToolKinds
}

func with(all []alternative, e ast.NavigableExpr, tools ToolKinds) []alternative {
	return append(slices.Clip(all), alternative{e, tools})
}

type literalReview struct {
	source *ast.SourceInfo
	found  *Error // the first
}

func (r *literalReview) walk(e ast.NavigableExpr, at position) {
	if r.found != nil {
		return
	}
	if c, ok := comparisonOf(e); ok {
		r.judge(c, at)
		return
	}
	children := e.Children()
	switch functionOf(e) {
	case operators.LogicalAnd:
		left, right := children[0], children[1]
		ifLeft, unlessLeft := at.tools.split(left)
		ifRight, unlessRight := at.tools.split(right)
		r.walk(left, position{ifRight, at.or, with(at.and, right, unlessRight)})
		r.walk(right, position{ifLeft, at.or, with(at.and, left, unlessLeft)})
	case operators.LogicalOr:
		left, right := children[0], children[1]
		ifLeft, unlessLeft := at.tools.split(left)
		ifRight, unlessRight := at.tools.split(right)
		r.walk(left, position{unlessRight, with(at.or, right, ifRight), at.and})
		r.walk(right, position{unlessLeft, with(at.or, left, ifLeft), at.and})
	case operators.LogicalNot:
		r.walk(children[0], position{at.tools, at.and, at.or})
	case operators.Conditional:
		yes, no := at.tools.split(children[0])
		r.walk(children[0], position{tools: at.tools})
		r.walk(children[1], position{tools: yes})
		r.walk(children[2], position{tools: no})
	default:
		for _, child := range children {
			r.walk(child, position{tools: at.tools})
		}
	}
}

// judge looks at the literals of one comparison.
func (r *literalReview) judge(c comparison, at position) {
	kind := canonicalArguments[c.argument].kind
	if !at.tools.know(kind) {
		return
	}
	alternatives := at.or
	if c.function == operators.NotEquals {
		alternatives = at.and
	}
	for _, literal := range c.literals {
		value, _ := text(literal)
		right, problem := c.correct(value)
		if problem == "" || c.function == operators.In && c.holds(right) {
			continue
		}
		isCovered := func(a alternative) bool { return a.tools.hasAll(at.tools, kind) && c.isCovered(a, right) }
		if slices.ContainsFunc(alternatives, isCovered) {
			continue
		}
		where := r.source.GetStartLocation(literal.ID())
		r.found = &Error{Field: "when", Line: where.Line(), Column: where.Column() + 1, Message: problem}
		return
	}
}
