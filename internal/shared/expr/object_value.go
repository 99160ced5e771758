package expr

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
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

// objects has the object types of an Env by their names in CEL.
type objects map[string]Type

// add adds the objects in a type.
func (o objects) add(t Type) error {
	switch {
	case t.of != nil:
		return o.add(*t.of)
	case t.kind != objectKind:
		return nil
	}
	if before, ok := o[objectMark+t.name]; ok {
		if !reflect.DeepEqual(before.fields, t.fields) {
			return fmt.Errorf("two objects have the name %s; give each its own", t.name)
		}
		return nil
	}
	o[objectMark+t.name] = t
	for _, name := range t.Fields() {
		if err := o.add(t.fields[name]); err != nil {
			return err
		}
	}
	return nil
}

// A provider gives CEL's checker the fields of objects. A field that may be absent has
// the type of its value, as in Kubernetes: x.f is a string, and x.?f an optional string.
type provider struct {
	types.Provider // of the types that expressions can name
	objects        objects
}

// newProvider returns a provider of objects, and of CEL's own types without those of
// Protocol Buffers.
func newProvider(o objects) (provider, error) {
	named := types.NewEmptyRegistry()
	err := named.RegisterType(types.BoolType, types.BytesType, types.DoubleType, types.DurationType, types.IntType, types.ListType,
		types.MapType, types.NullType, types.StringType, types.TimestampType, types.UintType)
	return provider{Provider: named, objects: o}, err
}

// FindStructType implements [types.Provider].
func (p provider) FindStructType(name string) (*types.Type, bool) {
	t, ok := p.objects[name]
	return types.NewTypeTypeWithParam(t.celType()), ok
}

// FindStructFieldType implements [types.Provider].
func (p provider) FindStructFieldType(object, name string) (*types.FieldType, bool) {
	t, ok := p.objects[object].fields[name]
	return &types.FieldType{Type: t.value().celType()}, ok
}

// field returns a field of an object or of an optional object.
func (o objects) field(of *cel.Type, name string) (Type, bool) {
	if of == nil {
		return Type{}, false
	}
	t, ok := o[present(of).TypeName()].fields[name]
	return t, ok
}

// present returns the type of the value of an optional.
func present(t *cel.Type) *cel.Type {
	if isOptional(t) {
		return t.Parameters()[0]
	}
	return t
}

func isOptional(t *cel.Type) bool {
	return t != nil && t.Kind() == types.OpaqueKind && t.TypeName() == types.OptionalType.TypeName()
}

// fromCEL converts a type of CEL. Types that JSON does not have are Dyn; they are
// checked when there is a value.
func (o objects) fromCEL(t *cel.Type) Type {
	switch {
	case isOptional(t):
		return Optional(o.fromCEL(t.Parameters()[0]))
	case t.Kind() == types.StructKind:
		return o[t.TypeName()]
	case t.Kind() == types.ListKind && len(t.Parameters()) == 1:
		return List(o.fromCEL(t.Parameters()[0]))
	case t.Kind() == types.MapKind && len(t.Parameters()) == 2:
		return Map(o.fromCEL(t.Parameters()[1]))
	}
	switch t.Kind() {
	case types.StringKind, types.TimestampKind, types.DurationKind: // the last two are strings in JSON
		return String()
	case types.IntKind, types.UintKind:
		return Int()
	case types.DoubleKind:
		return Double()
	case types.BoolKind:
		return Bool()
	default:
		return Dyn()
	}
}

// Absent is the value of an optional variable or field that does not exist.
var Absent absent //nolint:gochecknoglobals // it never changes

type absent struct{}

// valueError returns the error of a value that does not have its type.
func valueError(path, format string, args ...any) ref.Val {
	return types.NewErr("%s %s", path, fmt.Sprintf(format, args...))
}

// toCEL converts a value to a type. The value is JSON, decoded or not, an int, or
// Absent. Objects and lists of objects are decoded field by field, when a field is
// read: an expression reads little of the outputs of many child Runs. 490 outputs of
// 16 KiB of numbers take 11 MB instead of 390 MB. An error contains the path of the
// value.
func toCEL(path string, t Type, v any) ref.Val {
	if raw, ok := v.(json.RawMessage); ok {
		if v, ok = decode(t.value(), raw); !ok {
			return valueError(path, "is not JSON")
		}
	}
	switch {
	case t.kind == optionalKind && (v == Absent || v == nil):
		return types.OptionalNone
	case t.kind == optionalKind:
		value := toCEL(path, *t.of, v)
		if types.IsError(value) {
			return value
		}
		return types.OptionalOf(value)
	case v == Absent:
		return valueError(path, "has no value")
	}
	var out ref.Val
	switch t.kind {
	case listKind:
		out = newList(path, t, v)
	case mapKind, objectKind:
		out = newObject(path, t, v)
	case dynKind:
		out = fromAny(path, v)
	default:
		out = fromScalar(t.kind, v)
	}
	if out == nil {
		return valueError(path, "is not %s", a(t))
	}
	return out
}

// decode decodes JSON: objects and lists of objects one level deep. No JSON is Absent.
func decode(t Type, raw json.RawMessage) (decoded any, ok bool) {
	if len(raw) == 0 {
		return Absent, true
	}
	if t.isLazy() {
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) == nil && fields != nil {
			return fields, true
		}
	}
	if t.Elem().value().isLazy() {
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) == nil && items != nil {
			return items, true
		}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err := d.Decode(&decoded)
	return decoded, err == nil && !d.More()
}

// isLazy reports whether values of the type are decoded field by field.
func (t Type) isLazy() bool { return t.kind == objectKind || t.kind == mapKind }

// fromScalar converts a value of a scalar type; nil: the value has another type.
func fromScalar(k kind, v any) ref.Val {
	switch k {
	case stringKind:
		if s, ok := v.(string); ok {
			return fromString(s)
		}
	case intKind:
		if n, ok := toInt(v); ok {
			return types.Int(n)
		}
	case doubleKind:
		if f, ok := toDouble(v); ok {
			return types.Double(f)
		}
	case boolKind:
		if b, ok := v.(bool); ok {
			return types.Bool(b)
		}
	default: // the other types are not scalars
	}
	return nil
}

func fromString(s string) ref.Val { return types.String(strings.ToValidUTF8(s, "\uFFFD")) }

// fromAny converts a value of an unknown type.
func fromAny(path string, v any) ref.Val {
	switch v := v.(type) {
	case nil:
		return types.NullValue
	case json.RawMessage:
		return toCEL(path, Dyn(), v)
	case string:
		return fromString(v)
	case bool:
		return types.Bool(v)
	case int:
		return types.Int(v)
	case json.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return types.Int(n)
		}
		if f, ok := toDouble(v); ok {
			return types.Double(f)
		}
	case []any, []json.RawMessage:
		return newList(path, List(Dyn()), v)
	case map[string]any, map[string]json.RawMessage:
		return newObject(path, Map(Dyn()), v)
	}
	return valueError(path, "is not a value of JSON")
}

// toInt returns a whole number, exactly.
func toInt(v any) (int64, bool) {
	if n, ok := v.(int); ok {
		return int64(n), true
	}
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return i, true
	}
	f, err := n.Float64()
	if err != nil || !strings.ContainsAny(string(n), ".eE") { // digits alone that are too many
		return 0, false
	}
	return int64(f), isWhole(f)
}

// isWhole reports whether a number is an int.
func isWhole(f float64) bool { return f == math.Trunc(f) && f >= math.MinInt64 && f < math.MaxInt64 }

func toDouble(v any) (float64, bool) {
	switch n := v.(type) {
	case int:
		return float64(n), true
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	}
	return 0, false
}
