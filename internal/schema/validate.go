package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
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
	// lenient says that format is not checked.
	lenient bool
}

// Compile makes a Validator of a JSON Schema.
func Compile(schema json.RawMessage) (*Validator, error) {
	v := &Validator{root: &jsonschema.Schema{}, exact: map[*jsonschema.Schema]exact{}}
	if err := json.Unmarshal(schema, v.root); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	v.takeExact(v.root, schema)
	var err error
	if v.resolved, err = v.root.Resolve(nil); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	return v, nil
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
	plain, err := floats(decoded)
	if err != nil {
		return err
	}
	err = v.resolved.Validate(plain)
	words := v.explain(v.root, decoded, "")
	switch {
	case err != nil:
		return errors.New(cmp.Or(words, err.Error()))
	case words != "":
		return errors.New(words)
	}
	return nil
}

// Validate holds a JSON value to a schema that Check accepts. Its error says
// where the value does not fit, and is for the author of the value.
func Validate(schema, value json.RawMessage) error {
	v, err := Compile(schema)
	if err != nil {
		return err
	}
	return v.Validate(value)
}
