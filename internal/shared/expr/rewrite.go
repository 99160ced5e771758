package expr

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// keyFunction takes the keys of object literals, which are strings. No expression
// can name it.
const keyFunction = "@key"

const tooComplicated = "the expression is too complex; make it simpler"

// typedKeys wraps the keys of object literals in a function that takes strings
// only: JSON needs strings, and CEL's checker needs exponential time for keys of
// nested types.
func typedKeys(parsed *ast.AST) {
	next := ast.MaxID(parsed)
	ast.PostOrderVisit(parsed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.MapKind {
			return
		}
		for _, entry := range e.AsMap().Entries() {
			key := entry.AsMapEntry().Key()
			if key.Kind() != ast.LiteralKind || key.AsLiteral().Type() != types.StringType {
				next++
				wrap(parsed, key, keyFunction, next)
			}
		}
	}))
}

var factory = ast.NewExprFactory()

// wrap replaces a node by a call of a function with the node, which gets a new id.
func wrap(tree *ast.AST, e ast.Expr, function string, id int64) ast.Expr {
	inner := factory.NewUnspecifiedExpr(id)
	inner.SetKindCase(e)
	if where, ok := tree.SourceInfo().GetOffsetRange(e.ID()); ok {
		tree.SourceInfo().SetOffsetRange(id, where)
	}
	e.SetKindCase(factory.NewCall(e.ID(), function, inner))
	return inner
}

// isWrapped reports whether a call was inserted by wrap.
func isWrapped(call ast.CallExpr) bool {
	switch call.FunctionName() {
	case keyFunction, rangeFunction, elementFunction:
		return true
	}
	return false
}

// Functions that compiling inserts into checked expressions. No expression can name
// them.
const (
	// rangeFunction takes what a comprehension iterates over. Its cost bounds the
	// length of the loop, and maps iterate in the order of their keys.
	rangeFunction = "@range"
	rangeOverload = "range_any"
	// elementFunction evaluates an element of a list or map before a field of it is
	// selected.
	elementFunction = "@element"
	elementOverload = "element_any"
)

// insertCalls changes a checked expression where evaluation by CEL is not what the
// types promise: iterating over a map goes in random order, and selecting from an
// optional element of a list or map fails, as in nodes.items.output[0].?score.
func (s *source) insertCalls() {
	next := ast.MaxID(s.checked)
	ast.PostOrderVisit(s.checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if s.isOptionalElement(e) {
			next++
			s.insertCall(e, next, elementFunction, elementOverload)
		}
		if e.Kind() == ast.ComprehensionKind && e.AsComprehension().IterRange().Kind() != ast.ListKind {
			next++
			s.insertCall(e.AsComprehension().IterRange(), next, rangeFunction, rangeOverload)
		}
	}))
}

// insertCall wraps a checked node in a call of a function that returns its type.
func (s *source) insertCall(e ast.Expr, id int64, function, overload string) {
	t, reference := s.typ(e), s.checked.ReferenceMap()[e.ID()]
	inner := wrap(s.checked, e, function, id)
	s.checked.SetType(inner.ID(), t)
	if reference != nil {
		s.checked.SetReference(inner.ID(), reference)
	}
	s.checked.SetReference(e.ID(), ast.NewFunctionReference(overload))
}

// isOptionalElement reports whether a node selects an optional element of a list or map.
func (s *source) isOptionalElement(e ast.Expr) bool {
	var of ast.Expr
	switch {
	case !isOptional(s.typ(e)):
		return false
	case e.Kind() == ast.SelectKind:
		of = e.AsSelect().Operand()
	case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Index:
		of = e.AsCall().Args()[0]
	default:
		return false
	}
	return !isOptional(s.typ(of))
}
