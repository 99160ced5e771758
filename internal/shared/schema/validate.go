package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/deckhand-dev/deckhand/internal/shared/pattern"
	"github.com/deckhand-dev/deckhand/internal/shared/quote"
)

// A Validator validates JSON values against one schema. Numbers are compared exactly, with all their digits, except
// below anyOf, oneOf, not, if and $ref, which a schema that [Check] accepts does not have: there they are 64-bit
// floats. The keyword format is checked for date-time, date, time, email, hostname, ipv4, ipv6, uri and uuid; other
// formats, and formats below anyOf and the like, are ignored.
type Validator struct {
	root     *jsonschema.Schema
	resolved *jsonschema.Resolved
	exact    map[*jsonschema.Schema]exact
	weights  map[*jsonschema.Schema]weight
	// lenient means that format is not checked.
	lenient bool
}

// Bounds of a schema from outside, so that reading it takes little time.
const (
	maxSchemaBytes = 64 << 10
	maxNesting     = 256 // of objects and lists; a schema of a schema takes two
)

// Compile makes a Validator of a JSON Schema without references, as users and agents write it. It refuses schemas that
// would take too much time or memory to validate with: the schema need not have passed [Check].
func Compile(schema json.RawMessage) (*Validator, error) {
	v, err := compile(schema)
	if err != nil {
		return nil, err
	}
	for _, w := range v.weights {
		if w.ref != nil {
			return nil, errors.New("the schema has a reference ($ref): write the schema out where it is used")
		}
	}
	return v, nil
}

// CompileTool is [Compile] for the arguments of a tool. Its schema may have references, which may form cycles: if
// validating a value takes too long, it ends with a [*CostError].
func CompileTool(schema json.RawMessage) (*Validator, error) { return compile(schema) }

func compile(schema json.RawMessage) (*Validator, error) {
	switch {
	case len(schema) > maxSchemaBytes:
		return nil, fmt.Errorf("the schema has %d bytes; at most %d are allowed", len(schema), maxSchemaBytes)
	case nesting(schema) > maxNesting:
		return nil, fmt.Errorf("the schema is nested too deep; at most %d levels are allowed", maxNesting)
	}
	v := &Validator{root: &jsonschema.Schema{}, exact: map[*jsonschema.Schema]exact{}}
	if err := json.Unmarshal(schema, v.root); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	var err error
	if v.weights, err = weightsOf(v.root); err != nil {
		return nil, err
	}
	referred := map[*jsonschema.Schema]bool{}
	for _, w := range v.weights {
		referred[w.ref] = true
	}
	v.takeExact(v.root, schema, referred)
	for s := range v.weights {
		boundPatterns(s)
	}
	if v.resolved, err = v.root.Resolve(nil); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	return v, nil
}

// boundPatterns bounds the memory of the patterns that package jsonschema compiles.
func boundPatterns(s *jsonschema.Schema) {
	s.Pattern = pattern.Source(s.Pattern)
	names := s.PatternProperties
	if names == nil {
		return
	}
	s.PatternProperties = make(map[string]*jsonschema.Schema, len(names))
	for name, one := range names {
		s.PatternProperties[pattern.Source(name)] = one
	}
}

// nesting returns how deep the objects and lists of a JSON text are nested at most.
func nesting(raw []byte) int {
	depth, most, inString := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '\\' && inString:
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			most = max(most, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return most
}

// WithoutFormats returns a Validator that ignores format, which is the default in JSON Schema. It is for schemas of
// servers that validate formats themselves.
func (v *Validator) WithoutFormats() *Validator {
	lenient := *v
	lenient.lenient = true
	return &lenient
}

// Bounds of what errors repeat, in bytes: an error of package jsonschema quotes the value at each level.
const (
	maxError = 4 << 10
	maxShown = 80
)

// Validate validates a JSON value. Its error describes where the value does not match, for the author of the value.
func (v *Validator) Validate(value json.RawMessage) error {
	decoded, err := decode(value)
	if err != nil {
		return errors.New("the value is not JSON")
	}
	if c := (&coster{schemas: v.weights, left: maxCost}); !c.affords(v.root, sizedOf(decoded)) {
		return &CostError{Max: maxCost}
	}
	plain, err := floats(decoded)
	if err != nil {
		return err
	}
	err = v.resolved.Validate(plain)
	words := v.explain(v.root, decoded, "")
	switch {
	case err != nil:
		return errors.New(cmp.Or(words, quote.Clip(err.Error(), maxError)))
	case words != "":
		return errors.New(words)
	}
	return nil
}

// Validate validates a JSON value against a schema that [Compile] accepts. Its error describes where the value does not
// match, for the author of the value.
func Validate(schema, value json.RawMessage) error {
	v, err := Compile(schema)
	if err != nil {
		return err
	}
	return v.Validate(value)
}

// explain describes the first thing that is wrong with a value, for the model or the user who wrote it; empty: it has
// no description.
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

// within checks a value against a keyword that compares numbers.
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

// amount returns the message about too few or too many of something.
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

// known lists the properties of an object, required ones first.
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

// show returns a value as JSON, truncated if it is long.
func show(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return quote.Clip(string(raw), maxShown)
}
