package expr

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// maxNesting is the maximum depth of the JSON of a value.
const maxNesting = 1000

// encode encodes a value as JSON, deterministically: names are sorted, whole numbers
// are exact. Absent fields of an object are left out. Absent elements of a list are
// null, so that other elements keep their index.
func encode(v ref.Val) (json.RawMessage, error) {
	var e encoder
	if err := e.value(v, 0); err != nil {
		return nil, err
	}
	return e.b.Bytes(), nil
}

type encoder struct{ b bytes.Buffer }

func (e *encoder) value(v ref.Val, depth int) error {
	switch {
	case e.b.Len() > MaxResult:
		return fmt.Errorf("the value has more than %d bytes of JSON", MaxResult)
	case depth > maxNesting:
		return fmt.Errorf("the value is nested deeper than %d", maxNesting)
	}
	switch v := v.(type) {
	case *types.Optional:
		if !v.HasValue() {
			e.b.WriteString("null")
			return nil
		}
		return e.value(v.GetValue(), depth)
	case *types.Err:
		return v
	case traits.Lister:
		return e.list(v, depth)
	case traits.Mapper:
		return e.object(v, depth)
	}
	return e.scalar(v)
}

func (e *encoder) scalar(v ref.Val) error {
	switch v := v.(type) {
	case types.String:
		return e.string(string(v))
	case types.Int:
		e.b.WriteString(strconv.FormatInt(int64(v), 10))
	case types.Uint:
		e.b.WriteString(strconv.FormatUint(uint64(v), 10))
	case types.Bool:
		e.b.WriteString(strconv.FormatBool(bool(v)))
	case types.Null:
		e.b.WriteString("null")
	case types.Double:
		return e.double(float64(v))
	case types.Timestamp, types.Duration:
		s, _ := v.ConvertToType(types.StringType).(types.String)
		return e.string(string(s))
	case types.Bytes:
		return errors.New("JSON has no type for bytes; write string(…) if they are text")
	default:
		return fmt.Errorf("JSON has no type for a %s", v.Type().TypeName())
	}
	return nil
}

func (e *encoder) double(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Errorf("JSON cannot represent the number %v", f)
	}
	raw, err := json.Marshal(f)
	e.b.Write(raw)
	return err
}

// string writes a string without the escapes for HTML.
func (e *encoder) string(s string) error {
	if e.b.Len()+len(s) > MaxResult {
		return fmt.Errorf("the value has more than %d bytes of JSON", MaxResult)
	}
	if needsNoEscape(s) {
		e.b.WriteString(`"` + s + `"`)
		return nil
	}
	encoder := json.NewEncoder(&e.b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil {
		return err
	}
	e.b.Truncate(e.b.Len() - 1) // the newline
	return nil
}

// needsNoEscape reports whether JSON has a string unchanged.
func needsNoEscape(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c > '~' {
			return false
		}
	}
	return true
}

func (e *encoder) list(v traits.Lister, depth int) error {
	e.b.WriteByte('[')
	for i, n := types.Int(0), v.Size(); i.Compare(n) == types.IntNegOne; i++ {
		if i > 0 {
			e.b.WriteByte(',')
		}
		if err := e.value(v.Get(i), depth+1); err != nil {
			return err
		}
	}
	e.b.WriteByte(']')
	return nil
}

func (e *encoder) object(v traits.Mapper, depth int) error {
	names, err := namesOf(v)
	if err != nil {
		return err
	}
	e.b.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			e.b.WriteByte(',')
		}
		if err := e.string(name); err != nil {
			return err
		}
		e.b.WriteByte(':')
		if err := e.value(v.Get(types.String(name)), depth+1); err != nil {
			return err
		}
	}
	e.b.WriteByte('}')
	return nil
}

// namesOf returns the names of the fields of an object that are present, sorted.
func namesOf(v traits.Mapper) ([]string, error) {
	var names []string
	for it := v.Iterator(); it.HasNext() == types.True; {
		name, ok := it.Next().(types.String)
		if !ok {
			return nil, errors.New("the keys of an object must be strings; write the key in quotes")
		}
		if optional, ok := v.Get(name).(*types.Optional); !ok || optional.HasValue() {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names, nil
}
