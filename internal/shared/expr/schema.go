package expr

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/google/cel-go/cel"
)

// maxSchemaDepth is the maximum depth of a schema.
const maxSchemaDepth = 32

// A shape has the keywords of a schema that determine a type.
type shape struct {
	Type       string                     `json:"type"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	Additional json.RawMessage            `json:"additionalProperties"`
	Items      json.RawMessage            `json:"items"`
	Enum       []json.RawMessage          `json:"enum"`
}

// FromSchema returns the type of the values of a JSON Schema of the subset that package
// schema checks. A property that is not required is optional. An object without
// properties is a map, unless additionalProperties is false. The objects in it are named after it, with their path.
//
// It is not SchemaDeclType of k8s.io/apiserver/pkg/cel/common, which leaves out
// properties without a type and lists without items, gives type: object no fields,
// reads the format date-time as a timestamp, and renames properties: mail-address is
// mail__dash__address.
func FromSchema(name string, schema json.RawMessage) (Type, error) {
	return fromSchema(name, schema, 0)
}

func fromSchema(name string, schema json.RawMessage, depth int) (Type, error) {
	var s shape
	if depth > maxSchemaDepth {
		return Type{}, fmt.Errorf("the schema of %s is nested too deep", name)
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return Type{}, fmt.Errorf("reading the schema of %s: %w", name, err)
	}
	switch s.Type {
	case "string":
		return Enum(s.values()...), nil
	case "integer":
		return Int(), nil
	case "number":
		return Double(), nil
	case "boolean":
		return Bool(), nil
	case "array":
		of, err := fromOptionalSchema(name+"[]", s.Items, depth+1)
		return List(of), err
	case "object":
		return s.object(name, depth)
	case "":
		return Dyn(), nil
	}
	return Type{}, fmt.Errorf("the schema of %s has the type %q, which is none of array, boolean, integer, number, object and string", name, s.Type)
}

// values returns the values of an enum of strings, or nil.
func (s *shape) values() []string {
	var all []string
	for _, raw := range s.Enum {
		var value string
		if json.Unmarshal(raw, &value) != nil {
			return nil
		}
		all = append(all, value)
	}
	return all
}

// fromOptionalSchema is fromSchema for a schema that may be missing, or a boolean.
func fromOptionalSchema(name string, schema json.RawMessage, depth int) (Type, error) {
	if len(schema) == 0 || string(schema) == "true" || string(schema) == "false" {
		return Dyn(), nil
	}
	return fromSchema(name, schema, depth)
}

func (s *shape) object(name string, depth int) (Type, error) {
	if len(s.Properties) == 0 && string(s.Additional) == "false" {
		return Object(name, nil), nil
	}
	if len(s.Properties) == 0 {
		of, err := fromOptionalSchema(name+"{}", s.Additional, depth+1)
		return Map(of), err
	}
	fields := make(map[string]Type, len(s.Properties))
	for _, property := range slices.Sorted(maps.Keys(s.Properties)) {
		of, err := fromSchema(name+"."+property, s.Properties[property], depth+1)
		if err != nil {
			return Type{}, err
		}
		if !slices.Contains(s.Required, property) {
			of = Optional(of)
		}
		fields[property] = of
	}
	out := Object(name, fields)
	if len(s.Additional) > 0 && string(s.Additional) != "false" {
		of, err := fromOptionalSchema(name+"{}", s.Additional, depth+1)
		if err != nil {
			return Type{}, err
		}
		out.open = &of
	}
	return out, nil
}

// A Type is the type of the value of an expression. Types with the same String are
// equal. The zero Type is Dyn.
type Type struct {
	kind   kind
	name   string          // of an object
	of     *Type           // of the elements of a list or map, or the value of an optional
	fields map[string]Type // of an object
	open   *Type           // of fields of an object that it does not name; nil: it has no others
	values []string        // all values that a string may have; nil: any
}

type kind uint8

const (
	dynKind kind = iota
	stringKind
	intKind
	doubleKind
	boolKind
	listKind
	mapKind
	optionalKind
	objectKind
)

var kindNames = map[kind]string{
	dynKind: "any", stringKind: "string", intKind: "int", doubleKind: "double", boolKind: "bool",
	listKind: "list", mapKind: "map", optionalKind: "optional",
}

// Dyn returns the type of any JSON value. Its uses are checked at run time.
func Dyn() Type { return Type{} }

// String returns the type of strings.
func String() Type { return Type{kind: stringKind} }

// Enum returns the type of strings of a closed set of values.
func Enum(values ...string) Type { return Type{kind: stringKind, values: values} }

// Int returns the type of whole numbers of 64 bits.
func Int() Type { return Type{kind: intKind} }

// Double returns the type of numbers.
func Double() Type { return Type{kind: doubleKind} }

// Bool returns the type of true and false.
func Bool() Type { return Type{kind: boolKind} }

// List returns the type of lists with elements of one type.
func List(of Type) Type { return Type{kind: listKind, of: &of} }

// Map returns the type of objects with values of one type and unknown names.
func Map(of Type) Type { return Type{kind: mapKind, of: &of} }

// Optional returns the type of values that may be absent. Optional of an optional type returns that type.
func Optional(of Type) Type {
	if of.kind == optionalKind {
		return of
	}
	return Type{kind: optionalKind, of: &of}
}

// Object returns the type of objects with these fields. An expression that reads another field does not compile. The
// name is shown in messages and has to be unique in an Env.
func Object(name string, fields map[string]Type) Type {
	return Type{kind: objectKind, name: name, fields: maps.Clone(fields)}
}

// String returns the type for messages: string, list(Review), optional(int).
func (t Type) String() string {
	switch t.kind {
	case objectKind:
		return t.name
	case listKind, mapKind, optionalKind:
		return kindNames[t.kind] + "(" + t.of.String() + ")"
	default:
		return kindNames[t.kind]
	}
}

// IsOptional reports whether a value of the type may be absent.
func (t Type) IsOptional() bool { return t.kind == optionalKind }

// Fields returns the names of an object's fields, sorted.
func (t Type) Fields() []string { return slices.Sorted(maps.Keys(t.fields)) }

// Elem returns the type of the elements of a list or map, or of the value of an
// optional; for all other types Dyn.
func (t Type) Elem() Type {
	if t.of == nil {
		return Dyn()
	}
	return *t.of
}

// Field returns the type of a field of an object, or of a value of a map; for an unknown
// field Dyn.
func (t Type) Field(name string) Type {
	if t.kind == mapKind {
		return t.Elem()
	}
	return t.fields[name]
}

// value returns the type of the value of an optional; other types unchanged.
func (t Type) value() Type {
	if t.kind == optionalKind {
		return *t.of
	}
	return t
}

// objectMark is the prefix of the names of objects in CEL. An identifier cannot contain
// it, so no expression can name or create an object.
const objectMark = "@"

// celType returns the type for CEL's checker.
func (t Type) celType() *cel.Type {
	switch t.kind {
	case stringKind:
		return cel.StringType
	case intKind:
		return cel.IntType
	case doubleKind:
		return cel.DoubleType
	case boolKind:
		return cel.BoolType
	case listKind:
		return cel.ListType(t.of.celType())
	case mapKind:
		return cel.MapType(cel.StringType, t.of.celType())
	case optionalKind:
		return cel.OptionalType(t.of.celType())
	case objectKind:
		return cel.ObjectType(objectMark + t.name) // objects has the fields
	default:
		return cel.DynType
	}
}

// fits returns why a value of the type cannot be used for another type; empty: it can,
// or this is checked when there is a value.
func (t Type) fits(want Type) string {
	switch {
	case want.kind == optionalKind:
		return t.value().fits(*want.of)
	case t.kind == optionalKind:
		return "may be absent"
	case t.kind == dynKind || want.kind == dynKind || t.kind == intKind && want.kind == doubleKind:
		return ""
	case want.kind == objectKind:
		return t.fitsObject(want)
	case t.kind == objectKind && want.kind == mapKind:
		return ""
	case t.kind != want.kind:
		return fmt.Sprintf("is %s", a(t))
	case t.of != nil:
		if why := t.of.fits(*want.of); why != "" {
			return fmt.Sprintf("is %s", a(t))
		}
	}
	return ""
}

// fitsObject compares fields: the type of a literal has no name.
func (t Type) fitsObject(want Type) string {
	switch t.kind {
	case mapKind:
		return ""
	case objectKind:
	default:
		return fmt.Sprintf("is %s", a(t))
	}
	for _, name := range want.Fields() {
		wanted := want.fields[name]
		have, ok := t.fields[name]
		switch {
		case !ok && wanted.kind != optionalKind:
			return fmt.Sprintf("is %s, which has no field %s", a(t), name)
		case !ok:
		case have.fits(wanted) != "":
			return fmt.Sprintf("is %s, whose field %s %s", a(t), name, have.fits(wanted))
		}
	}
	return ""
}

// a returns a type with its article.
func a(t Type) string {
	switch t.kind {
	case dynKind:
		return "any value"
	case intKind:
		return "an int"
	case optionalKind:
		return "an " + t.String()
	case objectKind:
		return "the object " + t.name
	default:
		return "a " + t.String()
	}
}
