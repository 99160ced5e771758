package schema

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Explain says in words the first thing that is wrong with a value, for the
// model or the person who wrote it; empty: nothing that it has words for.
func Explain(s *jsonschema.Schema, value any) string { return explain(s, value, "") }

func explain(s *jsonschema.Schema, value any, at string) string {
	if words := explainType(s, value, at); words != "" {
		return words
	}
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(v any) bool { return reflect.DeepEqual(v, value) }) {
		return fmt.Sprintf("%s must be one of %s; got %s", place(at), list(s.Enum), show(value))
	}
	switch v := value.(type) {
	case map[string]any:
		return explainObject(s, v, at)
	case []any:
		return explainArray(s, v, at)
	case string:
		return explainText(s, v, at)
	case float64:
		return explainNumber(s, v, at)
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
	return fmt.Sprintf("%s must be %s; got %s", place(at), article(strings.Join(types, " or ")), article(got))
}

func explainObject(s *jsonschema.Schema, object map[string]any, at string) string {
	for _, name := range s.Required {
		if _, ok := object[name]; !ok {
			return fmt.Sprintf("%s is missing%s", place(join(at, name)), known(s))
		}
	}
	if words := amount(s.MinProperties, s.MaxProperties, len(object), "property"); words != "" {
		return place(at) + words
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if words := explainProperty(s, name, object[name], at); words != "" {
			return words
		}
	}
	return ""
}

func explainProperty(s *jsonschema.Schema, name string, value any, at string) string {
	property, ok := s.Properties[name]
	switch {
	case ok:
		return explain(property, value, join(at, name))
	case s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil: // how "false" is read
		return fmt.Sprintf("%s is not known%s", place(join(at, name)), known(s))
	case s.AdditionalProperties != nil: // a map
		return explain(s.AdditionalProperties, value, join(at, name))
	}
	return ""
}

func explainArray(s *jsonschema.Schema, array []any, at string) string {
	if words := amount(s.MinItems, s.MaxItems, len(array), "item"); words != "" {
		return place(at) + words
	}
	if s.Items == nil {
		return ""
	}
	for i, item := range array {
		if words := explain(s.Items, item, fmt.Sprintf("%s[%d]", at, i)); words != "" {
			return words
		}
	}
	return ""
}
