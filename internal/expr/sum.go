package expr

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// sum adds the numbers of a list, as the lists of Kubernetes' own expressions do.
// That of no number is 0.
func sum() cel.EnvOption {
	overload := func(id string, of *cel.Type, zero ref.Val) cel.FunctionOpt {
		add := func(list ref.Val) ref.Val { return total(list, zero) }
		return cel.MemberOverload(id, []*cel.Type{cel.ListType(of)}, of, cel.UnaryBinding(add))
	}
	return cel.Function("sum",
		overload("list_int_sum", cel.IntType, types.Int(0)),
		overload("list_double_sum", cel.DoubleType, types.Double(0)),
	)
}

// total adds up. The items of a list of any value are what they are when it is
// there: whole numbers and others are not added to each other.
func total(list, zero ref.Val) ref.Val {
	items, ok := list.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(list)
	}
	all, first := zero, true
	for i := items.Iterator(); i.HasNext() == types.True; first = false {
		next := i.Next()
		if _, is := next.(types.Double); is && first {
			all = types.Double(0)
		}
		adder, is := all.(traits.Adder)
		if !is {
			return all // an error
		}
		all = adder.Add(next)
	}
	return all
}
