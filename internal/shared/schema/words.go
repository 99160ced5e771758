package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

func (v *Validator) explainText(s *jsonschema.Schema, text, at string) string {
	if words := amount(s.MinLength, s.MaxLength, utf8.RuneCountInString(text), "character"); words != "" {
		return quotePath(at) + words
	}
	if f, known := formats[s.Format]; known && !v.lenient && !f.is(text) {
		return fmt.Sprintf("%s must be %s; got %s", quotePath(at), f.what, show(text))
	}
	if e := v.exact[s]; e.pattern != nil && !e.pattern.MatchString(text) {
		return fmt.Sprintf("%s must match %s; got %s", quotePath(at), e.expression, show(text))
	}
	return ""
}

func explainNumber(e exact, n json.Number, at string) string {
	value, known := rational(n)
	for _, name := range numeric {
		limit, is := rational(e.limits[name])
		if !is || !known || within(name, value, limit) {
			continue
		}
		return fmt.Sprintf("%s must be %s %s; got %s", quotePath(at), numericWords[name], show(e.limits[name]), show(n))
	}
	return ""
}

var numericWords = map[string]string{
	"multipleOf": "a multiple of", "minimum": "at least", "maximum": "at most", "exclusiveMinimum": "more than", "exclusiveMaximum": "less than",
}

// within holds a value to a keyword that compares numbers.
func within(keyword string, value, limit *big.Rat) bool {
	switch keyword {
	case "multipleOf":
		return limit.Sign() == 0 || new(big.Rat).Quo(value, limit).IsInt()
	case "minimum":
		return value.Cmp(limit) >= 0
	case "maximum":
		return value.Cmp(limit) <= 0
	case "exclusiveMinimum":
		return value.Cmp(limit) > 0
	}
	return value.Cmp(limit) < 0
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
	case json.Number:
		if isWhole(v) {
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

func quotePath(at string) string {
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
