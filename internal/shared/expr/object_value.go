package expr

import (
	"encoding/json"
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

// newObject returns an object of a map; nil: the value is not a map.
func newObject(path string, t Type, v any) ref.Val {
	o := &object{path: path, typ: t, decoded: map[string]ref.Val{}}
	switch v := v.(type) {
	case map[string]any:
		o.fields = v
	case map[string]json.RawMessage:
		o.fields = make(map[string]any, len(v))
		for name, raw := range v {
			o.fields[name] = raw
		}
	default:
		return nil
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
		v = nil // the object does not contain an absent field
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

// names returns the names of the fields that are present, sorted.
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

// newList returns a list of a slice; nil: the value is not a slice. Elements that are
// objects are decoded when they are read.
func newList(path string, t Type, v any) ref.Val {
	var elements []any
	switch v := v.(type) {
	case []any:
		elements = v
	case []json.RawMessage:
		elements = make([]any, len(v))
		for i, raw := range v {
			elements[i] = raw
		}
	default:
		return nil
	}
	items := make([]ref.Val, len(elements))
	at := func(i int) string { return fmt.Sprintf("%s[%d]", path, i) }
	for i, element := range elements {
		where := path
		if t.of.kind != dynKind && t.of.value().isLazy() { // it keeps its path
			where = at(i)
		}
		if items[i] = toCEL(where, *t.of, element); types.IsError(items[i]) {
			return toCEL(at(i), *t.of, element)
		}
	}
	return types.NewRefValList(types.DefaultTypeAdapter, items)
}
