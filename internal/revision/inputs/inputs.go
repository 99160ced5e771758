// Package inputs makes one JSON Schema of an input, in any form of declaration. Agents, Workflows, approval nodes and
// request tools declare their input in the same way: a schema, or a list of fields.
package inputs

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
)

// types are the schemas of the types of fields. Providers refuse a list without a schema of its items.
var types = map[v1alpha1.FieldType]json.RawMessage{
	"":                    json.RawMessage(`{"type":"string"}`),
	v1alpha1.FieldString:  json.RawMessage(`{"type":"string"}`),
	v1alpha1.FieldInteger: json.RawMessage(`{"type":"integer"}`),
	v1alpha1.FieldNumber:  json.RawMessage(`{"type":"number"}`),
	v1alpha1.FieldBoolean: json.RawMessage(`{"type":"boolean"}`),
	v1alpha1.FieldList:    json.RawMessage(`{"type":"array","items":{}}`),
	v1alpha1.FieldObject:  json.RawMessage(`{"type":"object"}`),
}

// Schema returns the JSON Schema of an input, compact. For an input with errors it returns a schema of the valid part.
func Schema(in *v1alpha1.Input) json.RawMessage {
	if in == nil {
		return Object(nil, nil)
	}
	if in.Schema != nil {
		var out bytes.Buffer
		if json.Compact(&out, in.Schema.Raw) != nil {
			return in.Schema.Raw
		}
		return out.Bytes()
	}
	properties, required := map[string]json.RawMessage{}, []string(nil)
	for _, f := range in.Fields {
		properties[f.Name] = property(f)
		if f.Default == nil && (f.Required == nil || *f.Required) {
			required = append(required, f.Name)
		}
	}
	return Object(properties, required)
}

// property returns the schema of a field, with its description and its default.
func property(f v1alpha1.Field) json.RawMessage {
	members := map[string]json.RawMessage{}
	_ = json.Unmarshal(typeOf(f), &members) // Check reports a schema that is no object
	if f.Description != "" {
		members["description"], _ = json.Marshal(f.Description) // a string always encodes
	}
	if f.Default != nil {
		members["default"] = f.Default.Raw
	}
	out, err := json.Marshal(members)
	if err != nil {
		return typeOf(f)
	}
	return out
}

func typeOf(f v1alpha1.Field) json.RawMessage {
	if f.Schema != nil {
		return f.Schema.Raw
	}
	return types[f.Type]
}

// Check returns an error for the first error in an input, with its path, which begins with at.
func Check(at string, in *v1alpha1.Input) error {
	if in == nil {
		return nil
	}
	if in.Schema != nil {
		if err := schema.Check(in.Schema.Raw); err != nil {
			return fmt.Errorf("%s.schema: %w", at, err)
		}
		return nil
	}
	for i, f := range in.Fields {
		if err := checkField(fmt.Sprintf("%s.fields[%d]", at, i), f); err != nil {
			return err
		}
	}
	whole := Schema(in)
	if size := len(whole); size > schema.MaxBytes {
		return fmt.Errorf("%s.fields: as a JSON Schema they have %d bytes; at most %d are allowed", at, size, schema.MaxBytes) //nolint:err113 // for a condition
	}
	if _, err := schema.Compile(whole); err != nil {
		return fmt.Errorf("%s.fields: %w", at, err)
	}
	return nil
}

// checkField checks the schema and the default of a field. No rule of the API's schema
// can read a default, because it has no type.
func checkField(at string, f v1alpha1.Field) error {
	if f.Default != nil && f.Required != nil && *f.Required {
		return fmt.Errorf("%s: a field with a default is never missing: remove required: true, or default", at) //nolint:err113 // for a condition
	}
	if f.Schema != nil {
		if err := schema.Check(only(f, f.Schema.Raw)); err != nil {
			return fmt.Errorf("%s.schema: %w", at, err)
		}
	}
	if f.Default == nil {
		return nil
	}
	value, err := json.Marshal(map[string]json.RawMessage{f.Name: f.Default.Raw})
	if err != nil {
		return fmt.Errorf("%s.default is not JSON", at) //nolint:err113 // for a condition
	}
	takes := only(f, typeOf(f))
	if err := schema.Validate(takes, schema.Fill(takes, value)); err != nil {
		return fmt.Errorf("%s.default: %w", at, err)
	}
	return nil
}

// only returns the schema of an object whose only field is f.
func only(f v1alpha1.Field, of json.RawMessage) json.RawMessage {
	return Object(map[string]json.RawMessage{f.Name: of}, []string{f.Name})
}

// Object returns the schema of an object with these properties and no others.
func Object(properties map[string]json.RawMessage, required []string) json.RawMessage {
	out, _ := json.Marshal(struct { // Check reports a schema that is not JSON
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties,omitempty"`
		Required   []string                   `json:"required,omitempty"`
		Others     bool                       `json:"additionalProperties"`
	}{"object", properties, required, false})
	return out
}
