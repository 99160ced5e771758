package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// review finds valid CEL that cannot be intended.
func review(a *ast.AST, tools ToolKinds) *Error {
	var first *Error
	ast.PreOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if first != nil || e.Kind() != ast.CallKind {
			return
		}
		call := e.AsCall()
		at, message := e, ""
		switch call.FunctionName() {
		case "runs":
			at, message = reviewRuns(call, tools)
		case "opaque":
			message = reviewShell(tools)
		case operators.Equals, operators.NotEquals, operators.In:
			at, message = reviewTool(call.Args(), tools)
		}
		if message == "" {
			return
		}
		if at == nil {
			at = e
		}
		where := a.SourceInfo().GetStartLocation(at.ID())
		first = &Error{Field: "when", Line: where.Line(), Column: where.Column() + 1, Message: message}
	}))
	return first
}

func reviewShell(tools ToolKinds) string {
	if tools.shell() {
		return ""
	}
	return "shell is about the tool that runs command lines, and the agent has none; leave this out"
}

// reviewRuns wants a program and its words apart.
func reviewRuns(call ast.CallExpr, tools ToolKinds) (ast.Expr, string) {
	if message := reviewShell(tools); message != "" {
		return nil, message
	}
	for _, arg := range call.Args() {
		s, ok := text(arg)
		switch words := strings.Fields(s); {
		case !ok:
		case len(words) == 0:
			return arg, `this names nothing; write a program, as in shell.runs('rm')`
		case len(words) > 1:
			return arg, fmt.Sprintf("this is several words in one; write shell.runs('%s')", shorten(strings.Join(words, "', '")))
		}
	}
	return nil, ""
}

// reviewTool checks the names with which the variable tool is compared. It returns the first wrong one and the problem.
func reviewTool(args []ast.Expr, tools ToolKinds) (ast.Expr, string) {
	if len(args) != 2 {
		return nil, ""
	}
	if named(args[1]) {
		args = []ast.Expr{args[1], args[0]}
	}
	if !named(args[0]) {
		return nil, ""
	}
	names := []ast.Expr{args[1]}
	if args[1].Kind() == ast.ListKind {
		names = args[1].AsList().Elements()
	}
	for _, e := range names {
		if name, ok := text(e); ok && !tools.has(name) {
			return e, tools.unknown(name)
		}
	}
	return nil, ""
}

// named reports whether an expression is the variable tool.
func named(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == "tool" }

// text returns the value of a text that is written out.
func text(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

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
	// or are alternatives that can make the condition true if the expression is always false; and are alternatives that
	// can make it false if the expression is always true.
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

// judge checks the literals of one comparison.
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

// know reports whether tools of a kind are among the tools, and no other tool may
// have an argument of the same name.
func (k ToolKinds) know(kind Kind) bool {
	has := false
	for _, one := range k {
		if one == Plain {
			return false
		}
		has = has || one == kind
	}
	return has
}

// hasAll reports whether k has all tools of a kind that others has.
func (k ToolKinds) hasAll(others ToolKinds, kind Kind) bool {
	for name, one := range others {
		if one == kind && k[name] == "" {
			return false
		}
	}
	return true
}

// about returns the tools that a rule for tools of these names is about. Without names it returns all tools.
func (k ToolKinds) about(names []string) ToolKinds {
	about := ToolKinds{}
	for name, kind := range k {
		prefix, open := strings.CutSuffix(name, "*")
		isAbout := func(n string) bool {
			return (Rule{Tools: []string{n}}).about(name) || open && strings.HasPrefix(n, prefix)
		}
		if len(names) == 0 || slices.ContainsFunc(names, isAbout) {
			about[name] = kind
		}
	}
	return about
}

// split returns the tools for whose calls a condition may be true, and those for whose calls it may be false. It
// evaluates only comparisons of the variable tool.
func (k ToolKinds) split(e ast.NavigableExpr) (yes, no ToolKinds) {
	children := e.Children()
	switch functionOf(e) {
	case operators.LogicalNot:
		no, yes = k.split(children[0])
		return yes, no
	case operators.LogicalAnd:
		yes, no = k.split(children[0])
		both, alsoNo := yes.split(children[1])
		return both, union(no, alsoNo)
	case operators.LogicalOr:
		yes, no = k.split(children[0])
		alsoYes, neither := no.split(children[1])
		return union(yes, alsoYes), neither
	case operators.Equals, operators.In:
		if names, ok := toolNames(e); ok {
			return k.splitByName(names)
		}
	case operators.NotEquals:
		if names, ok := toolNames(e); ok {
			no, yes = k.splitByName(names)
			return yes, no
		}
	}
	return k, k
}

// splitByName is split for a comparison of the variable tool with names.
func (k ToolKinds) splitByName(names []string) (yes, no ToolKinds) {
	yes, no = ToolKinds{}, ToolKinds{}
	for name, kind := range k {
		prefix, open := strings.CutSuffix(name, "*")
		is := slices.Contains(names, name)
		if is || open && slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, prefix) }) {
			yes[name] = kind
		}
		if !is {
			no[name] = kind
		}
	}
	return yes, no
}

func union(a, b ToolKinds) ToolKinds {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// toolNames returns the names with which a condition compares the variable tool; false: there are none, or it also
// compares something else.
func toolNames(e ast.NavigableExpr) ([]string, bool) {
	sides := e.Children()
	if named(sides[1]) {
		slices.Reverse(sides)
	}
	if !named(sides[0]) {
		return nil, false
	}
	return texts(items(sides[1]))
}

// functionOf returns the function or operator that an expression calls, or an empty name.
func functionOf(e ast.Expr) string {
	if e.Kind() != ast.CallKind {
		return ""
	}
	return e.AsCall().FunctionName()
}

// items are the elements of a list that is written out; any other expression is the
// only item.
func items(e ast.NavigableExpr) []ast.NavigableExpr {
	if e.Kind() == ast.ListKind {
		return e.Children()
	}
	return []ast.NavigableExpr{e}
}

// texts returns the values of literals; false: not all expressions are literals.
func texts(all []ast.NavigableExpr) ([]string, bool) {
	values := make([]string, len(all))
	for i, e := range all {
		value, ok := text(e)
		if !ok {
			return nil, false
		}
		values[i] = value
	}
	return values, true
}
