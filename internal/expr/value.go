package expr

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Absent is a value that does not exist.
var Absent absent //nolint:gochecknoglobals // it never changes

type absent struct{}

// valueError is a value that is not of its type.
func valueError(path, format string, args ...any) ref.Val {
	return types.NewErr("%s %s", path, fmt.Sprintf(format, args...))
}

// toCEL converts a value of a type: JSON, plain values of Go, or Absent. Objects, and
// lists of them, are decoded when they are read and as far as they are read: an
// expression reads little of the outputs of many children. The result may be an error,
// which has the path.
func toCEL(path string, t Type, v any) ref.Val {
	v, ok := open(t.value(), v)
	switch {
	case !ok:
		return valueError(path, "is not JSON")
	case t.kind == optionalKind && (v == Absent || v == nil):
		return types.OptionalNone
	case t.kind == optionalKind:
		there := toCEL(path, *t.of, v)
		if types.IsError(there) {
			return there
		}
		return types.OptionalOf(there)
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
		if n, ok := scalarOf(t.kind, v); ok {
			out = types.DefaultTypeAdapter.NativeToValue(n)
		}
	}
	if out == nil {
		return valueError(path, "is not %s", a(t))
	}
	return out
}

// open follows pointers and decodes JSON.
func open(t Type, v any) (opened any, ok bool) {
	for rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer; rv = reflect.ValueOf(v) {
		if rv.IsNil() {
			return Absent, true
		}
		v = rv.Elem().Interface()
	}
	raw, isJSON := v.(json.RawMessage)
	switch {
	case !isJSON:
		return v, true
	case len(raw) == 0:
		return Absent, true
	}
	return decode(t, raw)
}

// decode decodes JSON: objects, and lists of objects, one level deep.
func decode(t Type, raw json.RawMessage) (decoded any, ok bool) {
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

func scalarOf(k kind, v any) (n any, ok bool) {
	switch k {
	case stringKind:
		var s string
		s, ok = v.(string)
		return strings.ToValidUTF8(s, "\uFFFD"), ok
	case intKind:
		n, ok = whole(v)
	case doubleKind:
		n, ok = number64(v)
	case boolKind:
		n, ok = v.(bool)
	default: // the others are no scalars
	}
	return n, ok
}

// fromAny converts a value of no known type.
func fromAny(path string, v any) ref.Val {
	switch v := v.(type) {
	case nil:
		return types.NullValue
	case json.RawMessage:
		return toCEL(path, Dyn(), v)
	case string:
		return types.String(strings.ToValidUTF8(v, "\uFFFD"))
	case bool:
		return types.Bool(v)
	}
	if n, ok := v.(json.Number); !ok || !strings.ContainsAny(string(n), ".eE") {
		if n, ok := whole(v); ok && !float(v) {
			return types.Int(n)
		}
	}
	if n, ok := number64(v); ok {
		return types.Double(n)
	}
	var out ref.Val
	switch reflect.ValueOf(v).Kind() {
	case reflect.Slice:
		out = newList(path, List(Dyn()), v)
	case reflect.Map:
		out = newObject(path, Map(Dyn()), v)
	default:
	}
	if out == nil {
		return valueError(path, "is not a value of JSON")
	}
	return out
}

func float(v any) bool {
	k := reflect.ValueOf(v).Kind()
	return k == reflect.Float64 || k == reflect.Float32
}

// whole is a whole number, exactly.
func whole(v any) (int64, bool) {
	switch rv := reflect.ValueOf(v); {
	case !rv.IsValid():
		return 0, false
	case rv.CanInt():
		return rv.Int(), true
	case rv.CanUint():
		return int64(rv.Uint()), rv.Uint() <= math.MaxInt64 //nolint:gosec // what does not fit is told
	case rv.CanFloat():
		return wholeFloat(rv.Float())
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
	return wholeFloat(f)
}

func wholeFloat(f float64) (int64, bool) {
	if f != math.Trunc(f) || f < math.MinInt64 || f >= math.MaxInt64 {
		return 0, false
	}
	return int64(f), true
}

func number64(v any) (float64, bool) {
	if n, ok := v.(json.Number); ok {
		f, err := n.Float64()
		return f, err == nil
	}
	switch rv := reflect.ValueOf(v); {
	case !rv.IsValid():
		return 0, false
	case rv.CanInt():
		return float64(rv.Int()), true
	case rv.CanUint():
		return float64(rv.Uint()), true
	case rv.CanFloat():
		return rv.Float(), true
	}
	return 0, false
}
