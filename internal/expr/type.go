package expr

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/google/cel-go/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// A Type is what values of an expression are. Two with the same String are the
// same. The zero Type is Dyn.
type Type struct {
	kind   kind
	name   string          // of an object
	of     *Type           // what is in a list, map or optional
	fields map[string]Type // of an object
	values []string        // all that a string may be; nil: any
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

// Dyn is any value of JSON, known when it is there.
func Dyn() Type { return Type{} }

// String is text.
func String() Type { return Type{kind: stringKind} }

// Enum is a string that is one of a closed set of values.
func Enum(values ...string) Type { return Type{kind: stringKind, values: values} }

// Int is a whole number of 64 bits.
func Int() Type { return Type{kind: intKind} }

// Double is a number.
func Double() Type { return Type{kind: doubleKind} }

// Bool is true or false.
func Bool() Type { return Type{kind: boolKind} }

// List has values of one type.
func List(of Type) Type { return Type{kind: listKind, of: &of} }

// Map has values of one type under names that are not known.
func Map(of Type) Type { return Type{kind: mapKind, of: &of} }

// Optional is a value that may be absent. An optional of an optional is no more
// than that.
func Optional(of Type) Type {
	if of.kind == optionalKind {
		return of
	}
	return Type{kind: optionalKind, of: &of}
}

// Object has the fields that it names, and an expression that reads another does
// not compile. Its name is for people; in one Env it stands for one object.
func Object(name string, fields map[string]Type) Type {
	return Type{kind: objectKind, name: name, fields: maps.Clone(fields)}
}

// String is the type for people: string, list(Review), optional(int).
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

// Fields are the names of an object's fields, sorted.
func (t Type) Fields() []string { return slices.Sorted(maps.Keys(t.fields)) }

// Elem is the type of the elements of a list or map, or of the value of an
// optional. Of any other type it is Dyn.
func (t Type) Elem() Type {
	if t.of == nil {
		return Dyn()
	}
	return *t.of
}

// Field is the type of a field of an object, or of a value of a map. Of an unknown
// field it is Dyn.
func (t Type) Field(name string) Type {
	if t.kind == mapKind {
		return t.Elem()
	}
	return t.fields[name]
}

// value is the type of what is there when an optional is not absent.
func (t Type) value() Type {
	if t.kind == optionalKind {
		return *t.of
	}
	return t
}

// objectMark begins the names of objects in CEL, where no identifier can: so no
// expression makes or names one.
const objectMark = "@"

// decl is the declaration of the type for Kubernetes' CEL. Optional elements of lists
// and optional variables, which Kubernetes does not have, have CEL's own type.
func (t Type) decl() *apiservercel.DeclType {
	const unbounded = math.MaxInt // bounds are for estimates before a value is known
	switch t.kind {
	case stringKind:
		return apiservercel.StringType
	case intKind:
		return apiservercel.IntType
	case doubleKind:
		return apiservercel.DoubleType
	case boolKind:
		return apiservercel.BoolType
	case listKind:
		return apiservercel.NewListType(t.of.decl(), unbounded)
	case mapKind:
		return apiservercel.NewMapType(apiservercel.StringType, t.of.decl(), unbounded)
	case optionalKind:
		return apiservercel.NewSimpleTypeWithMinSize("optional_type", cel.OptionalType(t.of.decl().CelType()), nil, 1)
	case objectKind:
		return apiservercel.NewObjectType(objectMark+t.name, nil) // objects declares the fields
	default:
		return apiservercel.DynType
	}
}

// fits says why a value of the type cannot be where another is wanted; empty: it
// can, or it is known only when it is there.
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

// fitsObject compares by fields: a literal has no name.
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

// a is a type with its article.
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
