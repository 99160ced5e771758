// Package policylint finds likely mistakes in a policy: rules that compile and never apply. It only advises: no decision
// of a policy depends on it.
package policylint

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/deckhand-dev/deckhand/internal/shared/policy"
	"github.com/deckhand-dev/deckhand/internal/shared/policy/tree"
)

// Compile compiles rules as [policy.Compile] does, and refuses literals that never match.
func Compile(rules []policy.Rule, tools policy.ToolKinds) (*policy.Policy, error) {
	return policy.Compile(rules, tools, toolKinds(tools).checkLiterals)
}

// toolKinds are the tools that a condition may be about.
type toolKinds policy.ToolKinds

// checkLiterals refuses a literal that is compared with a canonical argument if no
// argument in canonical form equals it or begins with it: the comparison never
// holds, and the rule is not about the calls that it seems to be about. It accepts
// the literal where the comparison may be about a tool whose arguments are not
// known, and where an alternative to the comparison holds for the right literal.
func (k toolKinds) checkLiterals(rule policy.Rule, a *ast.AST) *policy.Error {
	r := literalReview{source: a.SourceInfo()}
	r.walk(ast.NavigateAST(a), position{tools: k.about(rule.Tools)})
	return r.found
}

// A position is where in a condition an expression is.
type position struct {
	tools toolKinds // those for whose calls the expression counts
	// or are alternatives that can make the condition true if the expression is always false; and are alternatives that
	// can make it false if the expression is always true.
	or, and []alternative
}

// An alternative is an expression, and the tools for whose calls it decides.
type alternative struct {
	ast.NavigableExpr
	tools toolKinds
}

func with(all []alternative, e ast.NavigableExpr, tools toolKinds) []alternative {
	return append(slices.Clip(all), alternative{e, tools})
}

type literalReview struct {
	source *ast.SourceInfo
	found  *policy.Error // the first
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
	switch tree.Function(e) {
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
		value, _ := tree.Text(literal)
		right, problem := c.correct(value)
		if problem == "" || c.function == operators.In && c.holds(right) {
			continue
		}
		isCovered := func(a alternative) bool { return a.tools.hasAll(at.tools, kind) && c.isCovered(a, right) }
		if slices.ContainsFunc(alternatives, isCovered) {
			continue
		}
		where := r.source.GetStartLocation(literal.ID())
		r.found = &policy.Error{Field: "when", Line: where.Line(), Column: where.Column() + 1, Message: problem}
		return
	}
}

// know reports whether tools of a kind are among the tools, and no other tool may
// have an argument of the same name.
func (k toolKinds) know(kind policy.Kind) bool {
	has := false
	for _, one := range k {
		if one == policy.Plain {
			return false
		}
		has = has || one == kind
	}
	return has
}

// hasAll reports whether k has all tools of a kind that others has.
func (k toolKinds) hasAll(others toolKinds, kind policy.Kind) bool {
	for name, one := range others {
		if one == kind && k[name] == "" {
			return false
		}
	}
	return true
}

// about returns the tools that a rule for tools of these names is about. Without names it returns all tools.
func (k toolKinds) about(names []string) toolKinds {
	about := toolKinds{}
	for name, kind := range k {
		prefix, open := strings.CutSuffix(name, "*")
		isAbout := func(n string) bool {
			return (policy.Rule{Tools: []string{n}}).About(name) || open && strings.HasPrefix(n, prefix)
		}
		if len(names) == 0 || slices.ContainsFunc(names, isAbout) {
			about[name] = kind
		}
	}
	return about
}

// split returns the tools for whose calls a condition may be true, and those for whose calls it may be false. It
// evaluates only comparisons of the variable tool.
func (k toolKinds) split(e ast.NavigableExpr) (yes, no toolKinds) {
	children := e.Children()
	switch tree.Function(e) {
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
func (k toolKinds) splitByName(names []string) (yes, no toolKinds) {
	yes, no = toolKinds{}, toolKinds{}
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

func union(a, b toolKinds) toolKinds {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// toolNames returns the names with which a condition compares the variable tool; false: there are none, or it also
// compares something else.
func toolNames(e ast.NavigableExpr) ([]string, bool) {
	sides := e.Children()
	if tree.IsTool(sides[1]) {
		slices.Reverse(sides)
	}
	if !tree.IsTool(sides[0]) {
		return nil, false
	}
	return tree.Texts(tree.Items(sides[1]))
}
