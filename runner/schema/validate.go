package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
)

// Validate holds a JSON value to a schema that Check accepts. Its error says
// where the value does not fit, and is for whoever wrote the value.
func Validate(schema, value json.RawMessage) error {
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return fmt.Errorf("reading the schema: %w", err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return fmt.Errorf("reading the schema: %w", err)
	}
	var v any
	if json.Unmarshal(value, &v) != nil {
		return errors.New("the value is not JSON")
	}
	if err := resolved.Validate(v); err != nil {
		return errors.New(cmp.Or(Explain(&s, v), err.Error()))
	}
	return nil
}
