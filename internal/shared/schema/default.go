package schema

import (
	"bytes"
	"encoding/json"
	"slices"
)

// A defaulted is what counts of a schema for its defaults.
type defaulted struct {
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	Items      json.RawMessage            `json:"items"`
}

// Fill returns a JSON value with the defaults of a schema for each property that
// an object in it lacks. A value that is not JSON, or that does not fit the schema,
// is returned as far as it can be read: [Validate] reports what is wrong with it.
func Fill(schema, value json.RawMessage) json.RawMessage {
	filled, changed := fill(schema, value)
	if !changed {
		return value
	}
	return filled
}

func fill(schema, value json.RawMessage) (json.RawMessage, bool) {
	var s defaulted
	if json.Unmarshal(schema, &s) != nil {
		return value, false
	}
	switch trimmed := bytes.TrimSpace(value); {
	case len(trimmed) == 0:
		return value, false
	case trimmed[0] == '{' && len(s.Properties) > 0:
		return s.fillObject(value)
	case trimmed[0] == '[' && len(s.Items) > 0:
		return s.fillArray(value)
	}
	return value, false
}

func (s *defaulted) fillObject(value json.RawMessage) (json.RawMessage, bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil {
		return value, false
	}
	changed := false
	for name, property := range s.Properties {
		given, found := members[name]
		if !found {
			if given = defaultOf(property); given == nil {
				continue
			}
			changed = true
		}
		filled, more := fill(property, given)
		members[name], changed = filled, changed || more
	}
	return encoded(members, value, changed)
}

func (s *defaulted) fillArray(value json.RawMessage) (json.RawMessage, bool) {
	var items []json.RawMessage
	if json.Unmarshal(value, &items) != nil {
		return value, false
	}
	changed := false
	for i, item := range items {
		filled, more := fill(s.Items, item)
		items[i], changed = filled, changed || more
	}
	return encoded(items, value, changed)
}

// encoded returns v as JSON, or the original where nothing changed.
func encoded(v any, original json.RawMessage, changed bool) (json.RawMessage, bool) { //nolint:revive // two outcomes of one walk
	if !changed {
		return original, false
	}
	out, err := json.Marshal(v)
	if err != nil {
		return original, false
	}
	return out, true
}

// defaultOf returns the default of a schema; nil: it has none.
func defaultOf(schema json.RawMessage) json.RawMessage {
	var s struct {
		Default json.RawMessage `json:"default"`
	}
	_ = json.Unmarshal(schema, &s) // Check reports a schema that is none
	return s.Default
}

// Filled returns the schema of the values that [Fill] returns: a property with a
// default is required, because it is never absent. What Filled cannot read it
// returns as it is.
func Filled(schema json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	var s defaulted
	if json.Unmarshal(schema, &members) != nil || json.Unmarshal(schema, &s) != nil {
		return schema
	}
	if len(s.Items) > 0 {
		members["items"] = Filled(s.Items)
	}
	if len(s.Properties) > 0 {
		members["properties"], members["required"] = s.filled()
	}
	out, err := json.Marshal(members)
	if err != nil {
		return schema
	}
	return out
}

// filled returns the properties, and the names of those that are never absent.
func (s *defaulted) filled() (properties, required json.RawMessage) {
	names := append([]string{}, s.Required...)
	for name, property := range s.Properties {
		if defaultOf(property) != nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
		s.Properties[name] = Filled(property)
	}
	slices.Sort(names)
	properties, _ = json.Marshal(s.Properties) // JSON already: cannot fail
	required, _ = json.Marshal(names)
	return properties, required
}
