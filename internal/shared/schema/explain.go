package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// explain says in words the first thing that is wrong with a value, for the
// model or the person who wrote it; empty: nothing that it has words for.
func (v *Validator) explain(s *jsonschema.Schema, value any, at string) string {
	if s.Ref != "" || s.DynamicRef != "" {
		return ""
	}
	if words := explainType(s, value, at); words != "" {
		return words
	}
	e := v.exact[s]
	switch {
	case e.enum != nil && len(e.enum) == 0:
		return quotePath(at) + " accepts no value, because its enum is empty: leave it out"
	case !e.allows(value):
		return fmt.Sprintf("%s must be one of %s; got %s", quotePath(at), list(e.enum), show(value))
	case len(e.constant) > 0 && !equal(e.constant[0], value):
		return fmt.Sprintf("%s must be %s; got %s", quotePath(at), show(e.constant[0]), show(value))
	}
	switch value := value.(type) {
	case map[string]any:
		return v.explainObject(s, value, at)
	case []any:
		return v.explainArray(s, value, at)
	case string:
		return v.explainText(s, value, at)
	case json.Number:
		return explainNumber(e, value, at)
	}
	return ""
}

func explainType(s *jsonschema.Schema, value any, at string) string {
	types := s.Types
	if s.Type != "" {
		types = []string{s.Type}
	}
	got := typeOf(value)
	if len(types) == 0 || slices.Contains(types, got) || got == "integer" && slices.Contains(types, "number") {
		return ""
	}
	return fmt.Sprintf("%s must be %s; got %s", quotePath(at), article(strings.Join(types, " or ")), article(got))
}

func (v *Validator) explainObject(s *jsonschema.Schema, object map[string]any, at string) string {
	for _, name := range s.Required {
		if _, ok := object[name]; !ok {
			return fmt.Sprintf("%s is missing%s", quotePath(join(at, name)), known(s))
		}
	}
	if words := amount(s.MinProperties, s.MaxProperties, len(object), "property"); words != "" {
		return quotePath(at) + words
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if words := v.explainProperty(s, name, object[name], at); words != "" {
			return words
		}
	}
	return ""
}

func (v *Validator) explainProperty(s *jsonschema.Schema, name string, value any, at string) string {
	property, ok := s.Properties[name]
	switch {
	case ok:
		return v.explain(property, value, join(at, name))
	case !isMap(s):
	case s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil: // how "false" is read
		return fmt.Sprintf("%s is not known%s", quotePath(join(at, name)), known(s))
	case s.AdditionalProperties != nil: // a map
		return v.explain(s.AdditionalProperties, value, join(at, name))
	}
	return ""
}

func (v *Validator) explainArray(s *jsonschema.Schema, array []any, at string) string {
	if words := amount(s.MinItems, s.MaxItems, len(array), "item"); words != "" {
		return quotePath(at) + words
	}
	if s.Items == nil || !isList(s) {
		return ""
	}
	for i, item := range array {
		if words := v.explain(s.Items, item, fmt.Sprintf("%s[%d]", at, i)); words != "" {
			return words
		}
	}
	return ""
}
