package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/google/cel-go/cel"
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

// Type returns the type of its value.
func (p *Program) Type() Type { return p.typ }

// Nodes returns the fields of the variable nodes that it reads, sorted, without
// duplicates.
func (p *Program) Nodes() []string { return nodesOf(p.paths) }

// Selects reports whether it selects a path, for example
// Selects("nodes", "gate", "output", "approved"), or a field below it. Using an object
// as a whole does not select its fields.
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
