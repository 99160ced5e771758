package expr

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// An object is a map of CEL whose fields are decoded when they are read, each once.
// It belongs to one evaluation.
type object struct {
	path    string
	typ     Type
	fields  map[string]any
	decoded map[string]ref.Val // nil: the field is absent
}

// newObject returns an object of a map; nil: the value is none.
func newObject(path string, t Type, v any) ref.Val {
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Map || rv.Type().Key().Kind() != reflect.String {
		return nil
	}
	o := &object{path: path, typ: t, fields: make(map[string]any, rv.Len()), decoded: map[string]ref.Val{}}
	for it := rv.MapRange(); it.Next(); {
		o.fields[it.Key().String()] = it.Value().Interface()
	}
	return o
}

// Find implements [traits.Mapper].
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), false
	}
	v := o.field(string(name))
	return v, v != nil
}

func (o *object) field(name string) ref.Val {
	if v, ok := o.decoded[name]; ok {
		return v
	}
	raw, ok := o.fields[name]
	if !ok {
		return nil
	}
	t := o.typ.Field(name)
	v := toCEL(o.path+"."+name, t, raw)
	if optional, ok := v.(*types.Optional); ok && t.kind == optionalKind {
		v = nil // an absent field is just not in the object
		if optional.HasValue() {
			v = optional.GetValue()
		}
	}
	o.decoded[name] = v
	return v
}

// Get implements [traits.Indexer].
func (o *object) Get(key ref.Val) ref.Val {
	v, found := o.Find(key)
	switch {
	case found || types.IsError(v):
		return v
	default:
		return types.NewErr("no such key: %v", key)
	}
}

// Contains implements [traits.Container].
func (o *object) Contains(key ref.Val) ref.Val {
	v, found := o.Find(key)
	if types.IsError(v) {
		return v
	}
	return types.Bool(found)
}

// names are those of the fields that are present, in order.
func (o *object) names() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(o.fields)), func(name string) bool { return o.field(name) == nil })
}

// Size implements [traits.Sizer].
func (o *object) Size() ref.Val { return types.Int(len(o.names())) }

// Iterator implements [traits.Iterable].
func (o *object) Iterator() traits.Iterator {
	return types.NewStringList(types.DefaultTypeAdapter, o.names()).Iterator()
}

// whole decodes all fields.
func (o *object) whole() traits.Mapper {
	all := make(map[string]any, len(o.fields))
	for _, name := range o.names() {
		all[name] = o.field(name)
	}
	return types.NewStringInterfaceMap(types.DefaultTypeAdapter, all)
}

// Type implements [ref.Val].
func (*object) Type() ref.Type { return types.MapType }

// Value implements [ref.Val].
func (o *object) Value() any { return o.whole().Value() }

// Equal implements [ref.Val].
func (o *object) Equal(other ref.Val) ref.Val { return o.whole().Equal(other) }

// ConvertToNative implements [ref.Val].
func (o *object) ConvertToNative(t reflect.Type) (any, error) { return o.whole().ConvertToNative(t) }

// ConvertToType implements [ref.Val].
func (o *object) ConvertToType(t ref.Type) ref.Val { return o.whole().ConvertToType(t) }

// newList returns a list of a slice; nil: the value is none. Elements that are objects
// are decoded when they are read.
func newList(path string, t Type, v any) ref.Val {
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Slice {
		return nil
	}
	items := make([]ref.Val, rv.Len())
	at := func(i int) string { return fmt.Sprintf("%s[%d]", path, i) }
	for i := range items {
		element, where := rv.Index(i).Interface(), path
		if t.of.kind != dynKind && t.of.value().isLazy() { // it keeps its path
			where = at(i)
		}
		if items[i] = toCEL(where, *t.of, element); types.IsError(items[i]) {
			return toCEL(at(i), *t.of, element)
		}
	}
	return types.NewRefValList(types.DefaultTypeAdapter, items)
}
