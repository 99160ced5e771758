package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

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

// hasAll reports whether all tools of a kind among others are there.
func (k ToolKinds) hasAll(others ToolKinds, kind Kind) bool {
	for name, one := range others {
		if one == kind && k[name] == "" {
			return false
		}
	}
	return true
}

// about returns the tools that a rule for tools of these names is about; without
// names all.
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

// split returns the tools for whose calls a condition may hold, and those for whose
// calls it may not hold. It only knows comparisons of the variable tool.
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

// toolNames are the names that a condition compares the variable tool with; false:
// it does not, or with something else as well.
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

// functionOf is the function or operator that an expression calls; empty: none.
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

// texts are the values of literals; false: not all expressions are such.
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
