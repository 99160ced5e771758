package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

func explainText(s *jsonschema.Schema, text, at string) string {
	if words := amount(s.MinLength, s.MaxLength, utf8.RuneCountInString(text), "character"); words != "" {
		return place(at) + words
	}
	if s.Pattern == "" {
		return ""
	}
	if pattern, err := regexp.Compile(s.Pattern); err != nil || pattern.MatchString(text) {
		return ""
	}
	return fmt.Sprintf("%s must match %s; got %s", place(at), s.Pattern, show(text))
}

func explainNumber(s *jsonschema.Schema, n float64, at string) string {
	switch {
	case s.MultipleOf != nil && !whole(n / *s.MultipleOf):
		return fmt.Sprintf("%s must be a multiple of %s; got %s", place(at), show(*s.MultipleOf), show(n))
	case s.Minimum != nil && n < *s.Minimum:
		return fmt.Sprintf("%s must be at least %s; got %s", place(at), show(*s.Minimum), show(n))
	case s.Maximum != nil && n > *s.Maximum:
		return fmt.Sprintf("%s must be at most %s; got %s", place(at), show(*s.Maximum), show(n))
	case s.ExclusiveMinimum != nil && n <= *s.ExclusiveMinimum:
		return fmt.Sprintf("%s must be more than %s; got %s", place(at), show(*s.ExclusiveMinimum), show(n))
	case s.ExclusiveMaximum != nil && n >= *s.ExclusiveMaximum:
		return fmt.Sprintf("%s must be less than %s; got %s", place(at), show(*s.ExclusiveMaximum), show(n))
	}
	return ""
}

func whole(n float64) bool {
	_, rest := math.Modf(n)
	return rest == 0
}

// amount says that there are too few or too many of something.
func amount(least, most *int, got int, what string) string {
	switch {
	case least != nil && got < *least:
		return fmt.Sprintf(" must have at least %s; got %d", many(*least, what), got)
	case most != nil && got > *most:
		return fmt.Sprintf(" must have at most %s; got %d", many(*most, what), got)
	}
	return ""
}

func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "y"); ok {
		what = stem + "ie"
	}
	return fmt.Sprintf("%d %ss", n, what)
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
