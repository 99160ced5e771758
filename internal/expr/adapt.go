package expr

import (
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// A change is what is done to one node of an expression before it is checked
// again.
type change struct {
	optional bool     // x.f becomes x.?f
	wraps    []string // functions that the node is put into, the inner first
}

// changes are by the id of the node, which parsing gives in the same way each
// time.
type changes map[int64]change

// inside marks the id of a node that was put into a function.
const inside = int64(1) << 40

var factory = ast.NewExprFactory()

// wrap notes that a node is put into a function, once.
func (c changes) wrap(e ast.Expr, function string) {
	if e.ID() >= inside {
		return
	}
	one := c[e.ID()]
	if !slices.Contains(one.wraps, function) {
		one.wraps = append(one.wraps, function)
		c[e.ID()] = one
	}
}

// apply is a copy of a parsed expression with the changes.
func (c changes) apply(parsed *ast.AST) *ast.AST {
	changed := ast.Copy(parsed)
	ast.PostOrderVisit(changed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		one, ok := c[e.ID()]
		if !ok {
			return
		}
		next := e.ID()
		fresh := func() int64 {
			next += inside
			where, _ := changed.SourceInfo().GetOffsetRange(e.ID())
			changed.SourceInfo().SetOffsetRange(next, where)
			return next
		}
		if one.optional && e.Kind() == ast.SelectKind {
			s := e.AsSelect()
			e.SetKindCase(factory.NewCall(e.ID(), operators.OptSelect, s.Operand(), factory.NewLiteral(fresh(), types.String(s.FieldName()))))
		}
		for _, w := range one.wraps {
			inner := factory.NewUnspecifiedExpr(fresh())
			inner.SetKindCase(e)
			e.SetKindCase(factory.NewCall(e.ID(), w, inner))
		}
	}))
	return changed
}

// keys puts the keys of objects into a function that takes text only. Beside
// saying what JSON needs, this keeps the checker from keys of composed types,
// which it needs exponential time for.
func keys(parsed *ast.AST) changes {
	all := changes{}
	ast.PostOrderVisit(parsed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.MapKind {
			return
		}
		for _, entry := range e.AsMap().Entries() {
			key := entry.AsMapEntry().Key()
			if key.Kind() != ast.LiteralKind || key.AsLiteral().Type() != types.StringType {
				all.wrap(key, keyFunction)
			}
		}
	}))
	return all
}

// An adapter finds what an expression that was checked needs to be changed in.
type adapter struct {
	objects *objects
	checked *ast.AST
	changes changes
	found   int // how many changes are new
}

// adapt adds to the changes what the types that were found ask for, and reports
// whether there was any: then the expression is to be checked again.
func (o *objects) adapt(checked *ast.AST, c changes) bool {
	a := adapter{objects: o, checked: checked, changes: c}
	ast.PostOrderVisit(checked.Expr(), ast.NewExprVisitor(a.visit))
	return a.found > 0
}

func (a *adapter) typ(e ast.Expr) *cel.Type { return a.checked.GetType(e.ID()) }

func (a *adapter) visit(e ast.Expr) {
	switch e.Kind() {
	case ast.SelectKind:
		a.selection(e)
	case ast.CallKind:
		a.call(e)
	case ast.ComprehensionKind:
		over := e.AsComprehension().IterRange()
		if t := a.typ(over); t != nil && (t.Kind() == types.MapKind || t.Kind() == types.DynKind) {
			a.wrap(over, sortedFunction)
		}
	default: // nothing else reads fields or takes values of two types
	}
}

func (a *adapter) wrap(e ast.Expr, function string) {
	before := len(a.changes[e.ID()].wraps)
	a.changes.wrap(e, function)
	a.found += len(a.changes[e.ID()].wraps) - before
}

// selection makes a field that may be absent optional.
func (a *adapter) selection(e ast.Expr) {
	s := e.AsSelect()
	if s.IsTestOnly() {
		return
	}
	if f, ok := a.objects.field(a.typ(s.Operand()), s.FieldName()); ok && f.kind == optionalKind && !a.changes[e.ID()].optional {
		one := a.changes[e.ID()]
		one.optional = true
		a.changes[e.ID()] = one
		a.found++
		return
	}
	a.element(e, s.Operand())
}

// element is for what is taken of a list or map of optionals. CEL does not look
// into such a value when it goes on from it.
func (a *adapter) element(e, operand ast.Expr) {
	t := a.typ(e)
	switch {
	case !isOptional(t):
	case isOptional(present(t)):
		a.wrap(e, flatFunction)
	case !isOptional(a.typ(operand)):
		a.wrap(e, sameFunction)
	}
}

func (a *adapter) call(e ast.Expr) {
	call := e.AsCall()
	args := call.Args()
	switch call.FunctionName() {
	case operators.Index:
		a.element(e, args[0])
	case operators.OptIndex, operators.OptSelect:
		if t := a.typ(e); isOptional(t) && isOptional(present(t)) {
			a.wrap(e, flatFunction)
		}
	case operators.Equals, operators.NotEquals:
		if numbers(a.typ(args[0]), a.typ(args[1])) {
			a.wrap(args[1], "dyn")
		}
	case operators.In:
		if list := a.typ(args[1]); list != nil && list.Kind() == types.ListKind && numbers(a.typ(args[0]), list.Parameters()[0]) {
			a.wrap(args[0], "dyn")
		}
	case operators.Conditional:
		a.alike(args[1], args[2])
		a.alike(args[2], args[1])
	case "orValue":
		a.orValue(call)
	}
}

func (a *adapter) orValue(call ast.CallExpr) {
	if !call.IsMemberFunction() || len(call.Args()) != 1 || !isOptional(a.typ(call.Target())) {
		return
	}
	a.alikeType(call.Args()[0], present(a.typ(call.Target())))
}

// alike makes a value of the type of another that stands for the same.
func (a *adapter) alike(e, other ast.Expr) { a.alikeType(e, a.typ(other)) }

func (a *adapter) alikeType(e ast.Expr, want *cel.Type) {
	t := a.typ(e)
	switch {
	case t == nil || want == nil:
	case t.Kind() == types.IntKind && want.Kind() == types.DoubleKind:
		a.wrap(e, "double")
	case t.Kind() == types.MapKind && want.Kind() == types.StructKind:
		a.wrap(e, "dyn")
	}
}

// numbers reports whether two types are numbers and not the same.
func numbers(t, u *cel.Type) bool { return number(t) && number(u) && t.Kind() != u.Kind() }

func number(t *cel.Type) bool {
	return t != nil && (t.Kind() == types.IntKind || t.Kind() == types.UintKind || t.Kind() == types.DoubleKind)
}
