package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// A Program is a compiled expression. It is safe for concurrent use.
type Program struct {
	source  *source
	vars    map[string]Type
	typ     Type
	want    Type
	paths   []path
	planned cel.Program
}

// Type returns the type of the program's value.
func (p *Program) Type() Type { return p.typ }

// Nodes returns the fields of the variable nodes that it reads, sorted, without
// duplicates.
func (p *Program) Nodes() []string { return nodesOf(p.paths) }

// Selects reports whether the program selects a path, for example Selects("nodes", "gate", "output", "approved"), or a
// field below it. Using an object as a whole does not select its fields.
func (p *Program) Selects(path ...string) bool { return selects(p.paths, path) }

// Eval returns its value as JSON, deterministically. The variables are JSON, decoded or
// not, ints, and Absent if their type is optional. The error contains the expression.
func (p *Program) Eval(vars map[string]any) (json.RawMessage, error) {
	v, err := p.value(vars)
	if err != nil {
		return nil, err
	}
	return p.encode(v)
}

// Find is Eval for an expression that was compiled for an optional type. It also returns
// whether there is a value.
func (p *Program) Find(vars map[string]any) (value json.RawMessage, found bool, err error) {
	v, err := p.value(vars)
	if err != nil {
		return nil, false, err
	}
	if optional, ok := v.(*types.Optional); ok && !optional.HasValue() {
		return nil, false, nil
	}
	value, err = p.encode(v)
	return value, err == nil, err
}

func (p *Program) encode(v ref.Val) (json.RawMessage, error) {
	raw, err := encode(v)
	if err != nil {
		return nil, p.source.newError(1, 1, err.Error())
	}
	return raw, nil
}

// Bool returns the value of a condition.
func (p *Program) Bool(vars map[string]any) (bool, error) {
	v, err := p.value(vars)
	if err != nil {
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, p.source.newError(1, 1, fmt.Sprintf("the value must be a bool; it is %s", valueKind(v)))
	}
	return bool(b), nil
}

func (p *Program) value(vars map[string]any) (ref.Val, error) {
	v, _, err := p.planned.Eval(p.read(vars))
	if err != nil {
		return nil, p.evalError(err)
	}
	if optional, ok := v.(*types.Optional); ok && p.want.kind != optionalKind {
		if !optional.HasValue() {
			return nil, p.source.newError(1, 1, "there is no value")
		}
		v = optional.GetValue()
	}
	if !hasKind(v, p.want) {
		return nil, p.source.newError(1, 1, fmt.Sprintf("the value must be %s; it is %s", a(p.want), valueKind(v)))
	}
	return v, nil
}

// read converts the variables that the expression reads.
func (p *Program) read(vars map[string]any) map[string]any {
	out := map[string]any{}
	for _, one := range p.paths {
		name := one[0]
		t, ok := p.vars[name]
		if _, done := out[name]; done || !ok {
			continue
		}
		v, ok := vars[name]
		if !ok {
			v = Absent
		}
		out[name] = toCEL(name, t, v)
	}
	return out
}

// evalError converts an error of an evaluation.
func (p *Program) evalError(err error) error {
	message := err.Error()
	for _, f := range failures {
		if rest, ok := strings.CutPrefix(message, f.prefix); ok {
			message = f.message + rest
			break
		}
	}
	if strings.HasSuffix(message, "expected iterable type") {
		message = "a value is not a list"
	}
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded {
		message = tooCostly
	}
	if at, ok := errors.AsType[*types.Err](err); ok {
		if node := p.source.node(at.NodeID()); node != nil {
			return p.source.at(node, "%s", message)
		}
	}
	return p.source.newError(1, 1, message)
}

// failures has the errors of evaluations by the prefix of CEL's message, and what to
// write instead of it.
var failures = []struct{ prefix, message string }{
	{"no such key: ", "there is no field "},
	{"index out of bounds: ", "the list has no item "},
	{"no such overload", "a value has another type than the expression expects"},
	{"optional.none() dereference", "value() of an absent value; write orValue(…)"},
}

// hasKind reports whether a value has the kind of a type.
func hasKind(v ref.Val, want Type) bool {
	optional, absent := v.(*types.Optional)
	if absent && want.kind == optionalKind {
		return !optional.HasValue() || hasKind(optional.GetValue(), *want.of)
	}
	switch want.value().kind {
	case stringKind:
		return v.Type() == types.StringType || v.Type() == types.TimestampType || v.Type() == types.DurationType
	case intKind:
		u, isUint := v.(types.Uint)
		f, isDouble := v.(types.Double)
		return v.Type() == types.IntType || isUint && u <= math.MaxInt64 || isDouble && isWhole(float64(f))
	case doubleKind:
		return v.Type() == types.IntType || v.Type() == types.UintType || v.Type() == types.DoubleType
	case boolKind:
		return v.Type() == types.BoolType
	case listKind:
		return v.Type() == types.ListType
	case mapKind, objectKind:
		return v.Type() == types.MapType
	default:
		return true
	}
}

// valueKind describes the type of a value in a message.
func valueKind(v ref.Val) string {
	switch v.Type() {
	case types.NullType:
		return "null"
	case types.MapType:
		return "an object"
	case types.IntType:
		return "an int"
	default:
		return "a " + v.Type().TypeName()
	}
}

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
	// rangeFunction wraps the operand of a comprehension. Its cost bounds the length of the loop, and it makes maps
	// iterate in the order of their keys.
	rangeFunction = "@range"
	rangeOverload = "range_any"
	// elementFunction evaluates an element of a list or map before a field of it is
	// selected.
	elementFunction = "@element"
	elementOverload = "element_any"
)

// insertCalls changes a checked expression where evaluation by CEL differs from the types. Iterating over a map has a
// random order. Selecting from an optional element of a list or map fails, as in nodes.items.output[0].?score.
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
