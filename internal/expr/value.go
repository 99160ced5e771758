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
)

// Absent is a value that is not there.
var Absent absent //nolint:gochecknoglobals // it never changes

type absent struct{}

// A misfit is a value that is not of its type.
type misfit struct {
	path    string
	message string
}

func (m *misfit) Error() string { return m.path + " " + m.message }

// under says in what the misfit is.
func under(name string, err error) error {
	if m, ok := err.(*misfit); ok && name != "" { //nolint:errorlint // it is never wrapped
		if m.path != "" && m.path[0] != '[' {
			name += "."
		}
		m.path = name + m.path
	}
	return err
}

func isNot(want Type) error { return &misfit{message: "is not " + a(want)} }

// native is a value as CEL takes it, as far as it is read: JSON, plain values of
// Go, and Absent.
func native(t Type, v any, r *reads) (any, error) {
	v, err := open(t, v, r)
	if err != nil {
		return nil, err
	}
	if t.kind == optionalKind {
		return nativeOptional(*t.of, v, r)
	}
	if v == Absent {
		return nil, &misfit{message: "has no value"}
	}
	switch t.kind {
	case listKind:
		return nativeList(t, v)
	case mapKind, objectKind:
		return nativeMap(t, v, r)
	case dynKind:
		return nativeAny(v)
	default:
		if n, ok := scalarOf(t.kind, v); ok {
			return n, nil
		}
		return nil, isNot(t)
	}
}

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

// open reads JSON, of what is needed of an object only the fields, and follows
// pointers.
func open(t Type, v any, r *reads) (any, error) {
	for rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer; rv = reflect.ValueOf(v) {
		if rv.IsNil() {
			return Absent, nil
		}
		v = rv.Elem().Interface()
	}
	raw, ok := v.(json.RawMessage)
	if !ok {
		return v, nil
	}
	if len(raw) == 0 {
		return Absent, nil
	}
	if t.value().kind == objectKind && r != nil && !r.whole {
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) == nil && fields != nil {
			return fields, nil
		}
	}
	var read any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&read); err != nil || d.More() {
		return nil, &misfit{message: "is not JSON"}
	}
	return read, nil
}

func nativeOptional(t Type, v any, r *reads) (any, error) {
	if v == Absent || v == nil {
		return types.OptionalNone, nil
	}
	there, err := native(t, v, r)
	if err != nil {
		return nil, err
	}
	return types.OptionalOf(types.DefaultTypeAdapter.NativeToValue(there)), nil
}

func nativeList(t Type, v any) (any, error) {
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Slice {
		return nil, isNot(t)
	}
	all := make([]any, rv.Len())
	for i := range all {
		var err error
		if all[i], err = native(*t.of, rv.Index(i).Interface(), &reads{whole: true}); err != nil {
			return nil, under(fmt.Sprintf("[%d]", i), err)
		}
	}
	return all, nil
}

func nativeMap(t Type, v any, r *reads) (any, error) {
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Map || rv.Type().Key().Kind() != reflect.String {
		return nil, isNot(t)
	}
	all := make(map[string]any, rv.Len())
	for it := rv.MapRange(); it.Next(); {
		name := it.Key().String()
		of := Dyn()
		if t.kind == mapKind {
			of = *t.of
		}
		if f, ok := t.fields[name]; ok {
			of = f
		}
		if r.of(name) == nil {
			continue
		}
		if err := put(all, name, of, it.Value().Interface(), r.of(name)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// put sets a field, if it is there. What is optional in an object is just not in
// it.
func put(all map[string]any, name string, t Type, v any, r *reads) error {
	field, err := native(t, v, r)
	if err != nil {
		return under(name, err)
	}
	if optional, ok := field.(*types.Optional); ok && t.kind == optionalKind {
		if !optional.HasValue() {
			return nil
		}
		field = optional.GetValue()
	}
	all[name] = field
	return nil
}

// nativeAny is a value of no type that is known.
func nativeAny(v any) (any, error) {
	switch v := v.(type) {
	case nil:
		return types.NullValue, nil
	case string:
		return strings.ToValidUTF8(v, "\uFFFD"), nil
	case bool:
		return v, nil
	}
	if n, ok := v.(json.Number); !ok || !strings.ContainsAny(string(n), ".eE") {
		if n, ok := whole(v); ok && !float(v) {
			return n, nil
		}
	}
	if n, ok := number64(v); ok {
		return n, nil
	}
	switch reflect.ValueOf(v).Kind() {
	case reflect.Slice:
		return nativeList(List(Dyn()), v)
	case reflect.Map:
		return nativeMap(Map(Dyn()), v, &reads{whole: true})
	default:
		return nil, &misfit{message: "is not a value of JSON"}
	}
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
