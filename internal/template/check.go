package template

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// Check says whether each path of a text leads to something that an input of a
// JSON Schema may have; where the schema says nothing, anything may be. It is
// for when a text is written, before there is an input. An empty schema says
// nothing at all.
func Check(text string, schema json.RawMessage) error {
	paths, err := Paths(text)
	if err != nil {
		return err
	}
	for _, p := range paths {
		if err := follow(p, schema); err != nil {
			return err
		}
	}
	return nil
}

// A shape is what counts of a schema here.
type shape struct {
	Type       json.RawMessage            `json:"type"`
	Properties map[string]json.RawMessage `json:"properties"`
	Additional json.RawMessage            `json:"additionalProperties"`
	Items      json.RawMessage            `json:"items"`
}

// shapeOf reads a schema; false where it says nothing: it is true, or no
// schema, which others report.
func shapeOf(schema json.RawMessage) (shape, bool) {
	var s shape
	err := json.Unmarshal(schema, &s)
	return s, err == nil
}

// follow goes into a schema as far as a path does.
func follow(p Path, schema json.RawMessage) error {
	for i, k := range p.keys {
		s, told := shapeOf(schema)
		if !told {
			return nil
		}
		here := describe(p.keys[:i])
		want := "object"
		if k.index >= 0 {
			want = "array"
		}
		if !s.may(want) {
			return p.errorf("%s does not exist: %s is of type %s", p, here, shorten(string(s.Type)))
		}
		next, ok := s.under(k)
		if !ok {
			names := slices.Sorted(maps.Keys(s.Properties))
			return p.errorf("there is no field %s; %s has %s%s", shorten(k.name), here, known(names), Similar(k.name, names))
		}
		schema = next
	}
	return nil
}

// may says whether a value may be of a type.
func (s *shape) may(kind string) bool {
	var one string
	var several []string
	switch {
	case len(s.Type) == 0:
		return true
	case json.Unmarshal(s.Type, &one) == nil:
		return one == kind
	case json.Unmarshal(s.Type, &several) == nil:
		return slices.Contains(several, kind)
	}
	return true
}

// under is the schema of what is under a key; empty when it may be anything.
func (s *shape) under(k key) (json.RawMessage, bool) {
	if k.index >= 0 {
		return s.Items, true
	}
	if property, ok := s.Properties[k.name]; ok {
		return property, true
	}
	switch additional := bytes.TrimSpace(s.Additional); string(additional) {
	case "":
		return nil, s.Properties == nil
	case "false":
		return nil, false
	default:
		return additional, true
	}
}
