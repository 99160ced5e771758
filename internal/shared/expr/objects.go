package expr

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

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
