package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/deckhand-dev/deckhand/internal/shared/pattern"
)

// exact has the keywords of one schema that compare numbers, with their exact digits, and its pattern. Package
// jsonschema reads numbers as 64-bit floats: then 19.99 is not a multiple of 0.01, and 9007199254740993 equals
// 9007199254740992.
type exact struct {
	enum       []any        // nil: there is none; empty: no value fits
	scalars    map[any]bool // those of enum that scalar knows, which are found without comparing them all
	others     []any        // the rest of enum
	constant   []any        // none, or one
	limits     map[string]json.Number
	pattern    *regexp.Regexp // compiled once; nil: there is none
	expression string         // of pattern
}

// numeric are the keywords of exact.limits.
var numeric = []string{"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}

// takeExact moves the keywords that compare numbers from a schema, and from those of its properties and items, into
// v.exact. Schemas below anyOf, $ref and the like are unchanged, because package jsonschema determines which of them
// apply. So are schemas that a $ref refers to, with everything in them: moved keywords would not apply at the
// reference.
func (v *Validator) takeExact(s *jsonschema.Schema, raw json.RawMessage, referred map[*jsonschema.Schema]bool) {
	var members map[string]json.RawMessage
	if s == nil || s.Ref != "" || s.DynamicRef != "" || referred[s] || json.Unmarshal(raw, &members) != nil {
		return
	}
	e := readExact(members)
	if compiled, err := pattern.Compile(s.Pattern); s.Pattern != "" && err == nil { // else package jsonschema reports it
		e.pattern, e.expression, s.Pattern = compiled, s.Pattern, ""
	}
	v.exact[s] = e
	w := v.weights[s]
	w.units += enumUnits(e.others) - enumUnits(s.Enum)
	v.weights[s] = w
	s.Enum, s.Const = nil, nil
	s.MultipleOf, s.Minimum, s.Maximum, s.ExclusiveMinimum, s.ExclusiveMaximum = nil, nil, nil, nil, nil
	var properties map[string]json.RawMessage
	_ = json.Unmarshal(members["properties"], &properties) // absent, or read once already
	for name, property := range s.Properties {
		v.takeExact(property, properties[name], referred)
	}
	if isList(s) {
		v.takeExact(s.Items, members["items"], referred)
	}
	if isMap(s) {
		v.takeExact(s.AdditionalProperties, members["additionalProperties"], referred)
	}
	for _, branches := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf} {
		for _, branch := range branches {
			loosen(branch)
		}
	}
}

func readExact(members map[string]json.RawMessage) exact {
	e := exact{limits: map[string]json.Number{}}
	if values, err := decode(members["enum"]); err == nil {
		e.enum, _ = values.([]any)
		e.sortEnum()
	}
	if raw, ok := members["const"]; ok {
		if value, err := decode(raw); err == nil {
			e.constant = []any{value}
		}
	}
	for _, name := range numeric {
		if value, err := decode(members[name]); err == nil {
			if n, ok := value.(json.Number); ok {
				e.limits[name] = n
			}
		}
	}
	return e
}

// sortEnum makes scalars and others of enum.
func (e *exact) sortEnum() {
	e.scalars = make(map[any]bool, len(e.enum))
	for _, value := range e.enum {
		if key, ok := scalar(value); ok {
			e.scalars[key] = true
		} else {
			e.others = append(e.others, value)
		}
	}
}

// allows reports whether enum has a value, or is absent.
func (e *exact) allows(value any) bool {
	if e.enum == nil {
		return true
	}
	if key, ok := scalar(value); ok {
		return e.scalars[key]
	}
	return slices.ContainsFunc(e.others, func(other any) bool { return equal(other, value) })
}

// scalar returns a comparable form of a value that is neither an object nor a list: equal values have equal forms, and
// the form of a number is its exact value. Numbers out of bounds equal nothing.
func scalar(value any) (any, bool) {
	switch v := value.(type) {
	case nil, bool, string:
		return v, true
	case json.Number:
		if r, ok := rational(v); ok {
			return json.Number(r.RatString()), true
		}
	}
	return nil, false
}

// loosen removes a multipleOf with decimals, which 64-bit floats cannot compare. It is for schemas that need not be
// enforced: an MCP server validates its arguments itself.
func loosen(s *jsonschema.Schema) {
	if s != nil && s.MultipleOf != nil && *s.MultipleOf != float64(int64(*s.MultipleOf)) {
		s.MultipleOf = nil
	}
}

// isList reports whether the items of an array all have one schema.
func isList(s *jsonschema.Schema) bool { return len(s.PrefixItems) == 0 && len(s.ItemsArray) == 0 }

// isMap reports whether additionalProperties is all there is for properties
// without a name of their own.
func isMap(s *jsonschema.Schema) bool { return len(s.PatternProperties) == 0 }

// decode decodes JSON and keeps the digits of its numbers.
func decode(raw json.RawMessage) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, errors.New("there is more behind the value")
	}
	return value, nil
}

// floats returns a value with its numbers in the form for package jsonschema: whole ones are exact within 64 bits.
func floats(value any) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, member := range v {
			var err error
			if all[name], err = floats(member); err != nil {
				return nil, err
			}
		}
		return all, nil
	case []any:
		all := make([]any, len(v))
		for i, item := range v {
			var err error
			if all[i], err = floats(item); err != nil {
				return nil, err
			}
		}
		return all, nil
	case json.Number:
		return float(v)
	}
	return value, nil
}

func float(n json.Number) (any, error) {
	if i, err := n.Int64(); err == nil {
		return i, nil
	}
	if i, err := strconv.ParseUint(n.String(), 10, 64); err == nil {
		return i, nil
	}
	f, err := n.Float64()
	if _, known := rational(n); err != nil || !known {
		return nil, fmt.Errorf("the number %s is too large or too small", show(n))
	}
	return f, nil
}

// maxExponent bounds the numbers that are compared, and so the memory that takes.
const maxExponent = 400

// rational returns the value of a number; false: it is out of bounds.
func rational(n json.Number) (*big.Rat, bool) {
	_, exponent, found := strings.Cut(strings.ToLower(n.String()), "e")
	if found {
		if e, err := strconv.Atoi(exponent); err != nil || e < -maxExponent || e > maxExponent {
			return nil, false
		}
	}
	return new(big.Rat).SetString(n.String())
}

// isWhole reports whether a number is an integer, however it is written: 1.0 is.
func isWhole(n json.Number) bool {
	r, ok := rational(n)
	return ok && r.IsInt()
}

// equal compares values as JSON Schema does: numbers by their exact values.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		other, ok := b.(json.Number)
		return ok && equalNumbers(a, other)
	case []any:
		other, ok := b.([]any)
		return ok && slices.EqualFunc(a, other, equal)
	case map[string]any:
		other, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, other, equal)
	}
	switch b.(type) {
	case []any, map[string]any: // which have no ==
		return false
	}
	return a == b
}

func equalNumbers(a, b json.Number) bool {
	x, known := rational(a)
	y, alsoKnown := rational(b)
	return known && alsoKnown && x.Cmp(y) == 0
}
