package expr

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// ownFunctions returns the functions that compiling inserts into expressions.
func ownFunctions() []cel.EnvOption {
	v := cel.TypeParamType("V")
	return []cel.EnvOption{
		cel.Function(keyFunction, cel.Overload("key_string", []*cel.Type{cel.StringType}, cel.StringType,
			cel.UnaryBinding(func(key ref.Val) ref.Val { return key }))),
		cel.Function(rangeFunction, cel.Overload(rangeOverload, []*cel.Type{v}, v, cel.UnaryBinding(ordered))),
		cel.Function(elementFunction, cel.Overload(elementOverload, []*cel.Type{v}, v,
			cel.UnaryBinding(func(element ref.Val) ref.Val { return element }))),
	}
}

// ordered returns a map that iterates in the order of its keys, and any other value
// as it is.
func ordered(v ref.Val) ref.Val {
	m, ok := v.(traits.Mapper)
	if !ok {
		return v
	}
	var keys []ref.Val
	for it := m.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortFunc(keys, func(a, b ref.Val) int { return cmp.Compare(fmt.Sprint(a.Value()), fmt.Sprint(b.Value())) })
	return &orderedMap{Mapper: m, keys: types.NewRefValList(types.DefaultTypeAdapter, keys)}
}

type orderedMap struct {
	traits.Mapper
	keys traits.Lister
}

// Iterator implements [traits.Iterable].
func (m *orderedMap) Iterator() traits.Iterator { return m.keys.Iterator() }
