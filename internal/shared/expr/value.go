package expr

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Absent is the value of an optional variable or field that does not exist.
var Absent absent //nolint:gochecknoglobals // it never changes

type absent struct{}

// valueError is the error of a value that does not have its type.
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
