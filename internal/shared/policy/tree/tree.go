// Package tree reads the syntax trees of conditions.
package tree

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// IsTool reports whether an expression is the variable tool.
func IsTool(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == "tool" }

// Text returns the value of a text that is written out.
func Text(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

// Function returns the function or operator that an expression calls, or an empty name.
func Function(e ast.Expr) string {
	if e.Kind() != ast.CallKind {
		return ""
	}
	return e.AsCall().FunctionName()
}

// Items are the elements of a list that is written out; any other expression is the
// only item.
func Items(e ast.NavigableExpr) []ast.NavigableExpr {
	if e.Kind() == ast.ListKind {
		return e.Children()
	}
	return []ast.NavigableExpr{e}
}

// Texts returns the values of literals; false: not all expressions are literals.
func Texts(all []ast.NavigableExpr) ([]string, bool) {
	values := make([]string, len(all))
	for i, e := range all {
		value, ok := Text(e)
		if !ok {
			return nil, false
		}
		values[i] = value
	}
	return values, true
}
