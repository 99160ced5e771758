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

// maxNesting is how deep the JSON of a value may be nested.
const maxNesting = 1000

// encode is a value as JSON, always in the same way: names in order, whole
// numbers exact. What is absent in an object is left out of it, and is null in a
// list, where others keep their places.
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
		return errors.New("bytes have no place in JSON; write string(…) where they are text")
	default:
		return fmt.Errorf("a %s has no place in JSON", v.Type().TypeName())
	}
	return nil
}

func (e *encoder) double(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Errorf("the number %v has no place in JSON", f)
	}
	raw, err := json.Marshal(f)
	e.b.Write(raw)
	return err
}

// string writes text without the escapes that JSON needs within HTML.
func (e *encoder) string(s string) error {
	if e.b.Len()+len(s) > MaxResult {
		return fmt.Errorf("the value has more than %d bytes of JSON", MaxResult)
	}
	if plain(s) {
		e.b.WriteString(`"` + s + `"`)
		return nil
	}
	encoder := json.NewEncoder(&e.b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil {
		return err
	}
	e.b.Truncate(e.b.Len() - 1) // the line's end
	return nil
}

// plain reports whether JSON writes a text as it is.
func plain(s string) bool {
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

// namesOf are the names in an object of what is there, in order.
func namesOf(v traits.Mapper) ([]string, error) {
	var names []string
	for it := v.Iterator(); it.HasNext() == types.True; {
		name, ok := it.Next().(types.String)
		if !ok {
			return nil, errors.New("an object has a name that is no text; put it in quotes")
		}
		if optional, ok := v.Get(name).(*types.Optional); !ok || optional.HasValue() {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names, nil
}
