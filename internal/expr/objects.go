package expr

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// objects are the object types of an Env by the name that CEL knows them by. They
// give the checker the fields. A field that may be absent has the type of its value,
// as in Kubernetes: x.f is a string, and x.?f an optional string. At run time
// objects are maps.
type objects struct {
	known types.Provider // the types that CEL itself has
	all   map[string]Type
}

// add takes in the objects within a type.
func (o *objects) add(t Type) error {
	switch {
	case t.of != nil:
		return o.add(*t.of)
	case t.kind != objectKind:
		return nil
	}
	if before, ok := o.all[objectMark+t.name]; ok {
		if !reflect.DeepEqual(before.fields, t.fields) {
			return fmt.Errorf("two objects have the name %s; give each its own", t.name)
		}
		return nil
	}
	o.all[objectMark+t.name] = t
	for _, name := range t.Fields() {
		if err := o.add(t.fields[name]); err != nil {
			return err
		}
	}
	return nil
}

// field is a field of what CEL says is an object or an optional one.
func (o *objects) field(of *cel.Type, name string) (Type, bool) {
	if of == nil {
		return Type{}, false
	}
	t, ok := o.all[present(of).TypeName()].fields[name]
	return t, ok
}

// FindStructType implements [types.Provider].
func (o *objects) FindStructType(name string) (*types.Type, bool) {
	if _, ok := o.all[name]; !ok {
		return nil, false
	}
	return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
}

// FindStructFieldNames implements [types.Provider].
func (o *objects) FindStructFieldNames(name string) ([]string, bool) {
	t, ok := o.all[name]
	return t.Fields(), ok
}

// FindStructFieldType implements [types.Provider].
func (o *objects) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	t, ok := o.all[name].fields[field]
	if !ok {
		return nil, false
	}
	return &types.FieldType{Type: t.value().cel()}, true
}

// FindIdent implements [types.Provider].
func (o *objects) FindIdent(name string) (ref.Val, bool) {
	if strings.Contains(name, ".") { // messages of Protocol Buffers are of no use here
		return nil, false
	}
	return o.known.FindIdent(name)
}

// EnumValue implements [types.Provider].
func (*objects) EnumValue(name string) ref.Val { return types.NewErr("there is no %s", name) }

// NewValue implements [types.Provider].
func (*objects) NewValue(name string, _ map[string]ref.Val) ref.Val {
	return types.NewErr("there is no %s", name)
}

// present is the type of what is there when an optional is not absent.
func present(t *cel.Type) *cel.Type {
	if isOptional(t) {
		return t.Parameters()[0]
	}
	return t
}

func isOptional(t *cel.Type) bool {
	return t != nil && t.Kind() == types.OpaqueKind && t.TypeName() == types.OptionalType.TypeName()
}

// fromCEL is a type that CEL found. What JSON has no word for is Dyn, which is
// told when there is a value.
func (o *objects) fromCEL(t *cel.Type) Type {
	switch {
	case isOptional(t):
		return Optional(o.fromCEL(t.Parameters()[0]))
	case t.Kind() == types.StructKind:
		return o.all[t.TypeName()]
	case t.Kind() == types.ListKind && len(t.Parameters()) == 1:
		return List(o.fromCEL(t.Parameters()[0]))
	case t.Kind() == types.MapKind && len(t.Parameters()) == 2:
		return Map(o.fromCEL(t.Parameters()[1]))
	}
	switch t.Kind() {
	case types.StringKind, types.TimestampKind, types.DurationKind: // the two are text in JSON
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
