package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/deckhand-dev/deckhand/internal/shared/pattern"
)

// A Validator holds JSON values to one schema. Numbers are compared exactly, with
// all their digits, but for those below anyOf, oneOf, not, if and $ref, which a
// schema that [Check] accepts does not have: there they are 64-bit floats.
//
// The keyword format is checked for date-time, date, time, email, hostname, ipv4,
// ipv6, uri and uuid; of any other format, and in the same places below anyOf and
// the like, it says nothing of a value.
type Validator struct {
	root     *jsonschema.Schema
	resolved *jsonschema.Resolved
	exact    map[*jsonschema.Schema]exact
	weights  map[*jsonschema.Schema]weight
	// lenient says that format is not checked.
	lenient bool
}

// What a schema of others may have at most, so that reading it takes little time.
const (
	maxSchemaBytes = 64 << 10
	maxNesting     = 256 // of objects and lists; a schema of a schema takes two
)

// Compile makes a Validator of a JSON Schema without references, as users write it and as the
// agents of a Run ask with it. It refuses what takes too much time or memory to validate with:
// any schema may be given to it, such as one that [Check] has not seen.
func Compile(schema json.RawMessage) (*Validator, error) {
	v, err := compile(schema)
	if err != nil {
		return nil, err
	}
	for _, w := range v.weights {
		if w.ref != nil {
			return nil, errors.New("the schema has a reference ($ref): write the schema out where it is used")
		}
	}
	return v, nil
}

// CompileTool is [Compile] for the arguments of a tool. Its schema may have references, which
// may form cycles: validating a value ends with a [*CostError] where it takes too long.
func CompileTool(schema json.RawMessage) (*Validator, error) { return compile(schema) }

func compile(schema json.RawMessage) (*Validator, error) {
	switch {
	case len(schema) > maxSchemaBytes:
		return nil, fmt.Errorf("the schema has %d bytes; at most %d are allowed", len(schema), maxSchemaBytes)
	case nesting(schema) > maxNesting:
		return nil, fmt.Errorf("the schema is nested too deep; at most %d levels are allowed", maxNesting)
	}
	v := &Validator{root: &jsonschema.Schema{}, exact: map[*jsonschema.Schema]exact{}}
	if err := json.Unmarshal(schema, v.root); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	var err error
	if v.weights, err = weightsOf(v.root); err != nil {
		return nil, err
	}
	referred := map[*jsonschema.Schema]bool{}
	for _, w := range v.weights {
		referred[w.ref] = true
	}
	v.takeExact(v.root, schema, referred)
	for s := range v.weights {
		boundPatterns(s)
	}
	if v.resolved, err = v.root.Resolve(nil); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	return v, nil
}

// boundPatterns bounds the memory of the patterns that package jsonschema compiles.
func boundPatterns(s *jsonschema.Schema) {
	s.Pattern = pattern.Source(s.Pattern)
	names := s.PatternProperties
	if names == nil {
		return
	}
	s.PatternProperties = make(map[string]*jsonschema.Schema, len(names))
	for name, one := range names {
		s.PatternProperties[pattern.Source(name)] = one
	}
}

// nesting returns how deep the objects and lists of a JSON text are nested at most.
func nesting(raw []byte) int {
	depth, most, inString := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '\\' && inString:
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			most = max(most, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return most
}

// WithoutFormats is a Validator that takes format for a remark, as JSON Schema
// does unless told otherwise. It is for schemas of others, who check for
// themselves what they mean by one.
func (v *Validator) WithoutFormats() *Validator {
	lenient := *v
	lenient.lenient = true
	return &lenient
}

// Validate holds a JSON value to the schema. Its error says where the value does
// not fit, and is for the author of the value.
func (v *Validator) Validate(value json.RawMessage) error {
	decoded, err := decode(value)
	if err != nil {
		return errors.New("the value is not JSON")
	}
	if c := (&coster{schemas: v.weights, left: maxCost}); !c.affords(v.root, sizedOf(decoded)) {
		return &CostError{Max: maxCost}
	}
	plain, err := floats(decoded)
	if err != nil {
		return err
	}
	err = v.resolved.Validate(plain)
	words := v.explain(v.root, decoded, "")
	switch {
	case err != nil:
		return errors.New(cmp.Or(words, cut(err.Error())))
	case words != "":
		return errors.New(words)
	}
	return nil
}

// cut shortens an error of package jsonschema, which quotes the value at each level.
func cut(text string) string {
	const most = 4 << 10
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// Validate holds a JSON value to a schema that [Compile] accepts. Its error says
// where the value does not fit, and is for the author of the value.
func Validate(schema, value json.RawMessage) error {
	v, err := Compile(schema)
	if err != nil {
		return err
	}
	return v.Validate(value)
}
