package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// explain says in words the first thing that is wrong with a value, or nothing
// when it is none of what models usually get wrong.
func explain(s *jsonschema.Schema, value any, at string) string {
	if words := explainType(s, value, at); words != "" {
		return words
	}
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(v any) bool { return reflect.DeepEqual(v, value) }) {
		return fmt.Sprintf("%s must be one of %s; got %s.", place(at), list(s.Enum), show(value))
	}
	switch v := value.(type) {
	case map[string]any:
		return explainObject(s, v, at)
	case []any:
		return explainArray(s, v, at)
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
	return fmt.Sprintf("%s must be %s; got %s.", place(at), article(strings.Join(types, " or ")), article(got))
}

func explainObject(s *jsonschema.Schema, object map[string]any, at string) string {
	for _, name := range s.Required {
		if _, ok := object[name]; !ok {
			return fmt.Sprintf("%s is missing%s.", place(join(at, name)), known(s))
		}
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
		return fmt.Sprintf("%s is not known%s.", place(join(at, name)), known(s))
	}
	return ""
}

func explainArray(s *jsonschema.Schema, array []any, at string) string {
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

// known lists what an object may have, required first.
func known(s *jsonschema.Schema) string {
	var names []string
	for _, name := range s.Required {
		names = append(names, name+" (required)")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(s.Required, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; there are: " + strings.Join(names, ", ")
}

func typeOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
	}
	return "number"
}

func article(noun string) string {
	switch {
	case noun == "null":
		return noun
	case strings.ContainsAny(noun[:1], "aeiou"):
		return "an " + noun
	}
	return "a " + noun
}

func place(at string) string {
	if at == "" {
		return "the value"
	}
	return "`" + at + "`"
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

func list(values []any) string {
	shown := make([]string, len(values))
	for i, v := range values {
		shown[i] = show(v)
	}
	return strings.Join(shown, ", ")
}

// show is a value as JSON, cut where it is long.
func show(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	const most = 80
	if len(raw) > most {
		return strings.ToValidUTF8(string(raw[:most]), "") + "…"
	}
	return string(raw)
}
