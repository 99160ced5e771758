package expr

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Names that no text can have.
const (
	sameFunction   = "@same"   // what is optional, evaluated before anything is selected of it
	flatFunction   = "@flat"   // an optional of an optional as one
	keyFunction    = "@key"    // a key of an object, which is text
	sortedFunction = "@sorted" // what a comprehension goes over, which is the same each time
	targetVar      = "@target"
	unusedVar      = "@unused"
)

// ownFunctions are what adapt puts into expressions.
func ownFunctions() []cel.EnvOption {
	v := cel.TypeParamType("V")
	one, two := cel.OptionalType(v), cel.OptionalType(cel.OptionalType(v))
	k := cel.TypeParamType("K")
	same := func(x ref.Val) ref.Val { return x }
	return []cel.EnvOption{
		sum(),
		cel.Function(sameFunction, cel.Overload("same_optional", []*cel.Type{one}, one, cel.UnaryBinding(same))),
		cel.Function(flatFunction, cel.Overload("flat_optional", []*cel.Type{two}, one, cel.UnaryBinding(flat))),
		cel.Function(keyFunction, cel.Overload("key_string", []*cel.Type{cel.StringType}, cel.StringType, cel.UnaryBinding(same))),
		cel.Function(sortedFunction,
			cel.Overload("sorted_map", []*cel.Type{cel.MapType(k, v)}, cel.ListType(k), cel.UnaryBinding(sortedKeys)),
			cel.Overload("sorted_list", []*cel.Type{cel.ListType(v)}, cel.ListType(v), cel.UnaryBinding(same))),
	}
}

// sortedKeys are those of a map, which CEL goes over in any order.
func sortedKeys(x ref.Val) ref.Val {
	var keys []ref.Val
	m, _ := x.(traits.Mapper)
	for it := m.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortFunc(keys, func(a, b ref.Val) int { return strings.Compare(fmt.Sprint(a.Value()), fmt.Sprint(b.Value())) })
	return types.NewRefValList(types.DefaultTypeAdapter, keys)
}

func flat(x ref.Val) ref.Val {
	for {
		outer, ok := x.(*types.Optional)
		if !ok || !outer.HasValue() {
			return x
		}
		inner, ok := outer.GetValue().(*types.Optional)
		if !ok {
			return outer
		}
		x = inner
	}
}

// optionalMacros are optMap and optFlatMap in place of CEL's, which write what
// they are called on twice: a chain of n of them is a tree of 2ⁿ there.
func optionalMacros() cel.EnvOption {
	return cel.Macros(
		cel.ReceiverMacro("optMap", 2, optionalMacro(func(f cel.MacroExprFactory, e ast.Expr) ast.Expr {
			return f.NewCall("optional.of", e)
		})),
		cel.ReceiverMacro("optFlatMap", 2, optionalMacro(func(_ cel.MacroExprFactory, e ast.Expr) ast.Expr { return e })),
	)
}

// optionalMacro is
//
//	let @target = target: @target.hasValue() ? wrap(let x = @target.value(): e) : optional.none()
func optionalMacro(wrap func(cel.MacroExprFactory, ast.Expr) ast.Expr) cel.MacroFactory {
	return func(f cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
		if args[0].Kind() != ast.IdentKind {
			return nil, f.NewError(args[0].ID(), "the first argument names the value, as in .optMap(x, x.name)")
		}
		inner := let(f, args[0].AsIdent(), f.NewMemberCall("value", f.NewIdent(targetVar)), args[1])
		return let(f, targetVar, target, f.NewCall(operators.Conditional,
			f.NewMemberCall("hasValue", f.NewIdent(targetVar)),
			wrap(f, inner),
			f.NewCall("optional.none"),
		)), nil
	}
}

// let is a comprehension over nothing: its accumulator is the variable.
func let(f cel.MacroExprFactory, name string, is, in ast.Expr) ast.Expr {
	return f.NewComprehension(f.NewList(), unusedVar, name, is, f.NewLiteral(types.False), f.NewIdent(name), in)
}
