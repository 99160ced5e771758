package expr

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// maxSchemaDepth is the maximum depth of a schema.
const maxSchemaDepth = 32

// A shape has the keywords of a schema that determine a type.
type shape struct {
	Type       string                     `json:"type"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	Additional json.RawMessage            `json:"additionalProperties"`
	Items      json.RawMessage            `json:"items"`
	Enum       []json.RawMessage          `json:"enum"`
}

// FromSchema returns the type of the values of a JSON Schema of the subset that package
// schema checks. A property that is not required is optional. An object without
// properties is a map, unless additionalProperties is false. The objects in it are named after it, with their path.
//
// It is not SchemaDeclType of k8s.io/apiserver/pkg/cel/common, which leaves out
// properties without a type and lists without items, gives type: object no fields,
// reads the format date-time as a timestamp, and renames properties: mail-address is
// mail__dash__address.
func FromSchema(name string, schema json.RawMessage) (Type, error) {
	return fromSchema(name, schema, 0)
}

func fromSchema(name string, schema json.RawMessage, depth int) (Type, error) {
	var s shape
	if depth > maxSchemaDepth {
		return Type{}, fmt.Errorf("the schema of %s is nested too deep", name)
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return Type{}, fmt.Errorf("reading the schema of %s: %w", name, err)
	}
	switch s.Type {
	case "string":
		return Enum(s.values()...), nil
	case "integer":
		return Int(), nil
	case "number":
		return Double(), nil
	case "boolean":
		return Bool(), nil
	case "array":
		of, err := fromOptionalSchema(name+"[]", s.Items, depth+1)
		return List(of), err
	case "object":
		return s.object(name, depth)
	case "":
		return Dyn(), nil
	}
	return Type{}, fmt.Errorf("the schema of %s has the type %q, which is none of array, boolean, integer, number, object and string", name, s.Type)
}

// values returns the values of an enum of strings; nil: there is none.
func (s *shape) values() []string {
	var all []string
	for _, raw := range s.Enum {
		var value string
		if json.Unmarshal(raw, &value) != nil {
			return nil
		}
		all = append(all, value)
	}
	return all
}

// fromOptionalSchema is fromSchema for a schema that may be missing, or a bool.
func fromOptionalSchema(name string, schema json.RawMessage, depth int) (Type, error) {
	if len(schema) == 0 || string(schema) == "true" || string(schema) == "false" {
		return Dyn(), nil
	}
	return fromSchema(name, schema, depth)
}

func (s *shape) object(name string, depth int) (Type, error) {
	if len(s.Properties) == 0 && string(s.Additional) == "false" {
		return Object(name, nil), nil
	}
	if len(s.Properties) == 0 {
		of, err := fromOptionalSchema(name+"{}", s.Additional, depth+1)
		return Map(of), err
	}
	fields := make(map[string]Type, len(s.Properties))
	for _, property := range slices.Sorted(maps.Keys(s.Properties)) {
		of, err := fromSchema(name+"."+property, s.Properties[property], depth+1)
		if err != nil {
			return Type{}, err
		}
		if !slices.Contains(s.Required, property) {
			of = Optional(of)
		}
		fields[property] = of
	}
	out := Object(name, fields)
	if len(s.Additional) > 0 && string(s.Additional) != "false" {
		of, err := fromOptionalSchema(name+"{}", s.Additional, depth+1)
		if err != nil {
			return Type{}, err
		}
		out.open = &of
	}
	return out, nil
}
