package schema

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/deckhand-dev/deckhand/internal/shared/pattern"
)

// Bounds of the cost of validating one value. A unit is one schema applied to a value, plus 64 bytes of the two, which
// the error of package jsonschema quotes, in up to four enclosing schemas, which quote that error: some microseconds,
// and some kilobytes of garbage.
const (
	maxCost = 100_000
	// maxApplied bounds how many schemas are applied inside each other: the stack.
	maxApplied = 2_000
	unitBytes  = 64
	// unitMatching is how many instructions of a pattern, times bytes of a text, are a unit.
	unitMatching = 1_000
)

// A CostError means that a value was not validated, because that takes too long.
type CostError struct{ Max int }

func (e *CostError) Error() string {
	return fmt.Sprintf("validating the value takes too long: its schema applies more than %d schemas to parts of it", e.Max)
}

// A sized value has the number of units of its text.
type sized struct {
	text    string // of a string
	members map[string]*sized
	items   []*sized
	units   int
}

func sizedOf(value any) *sized {
	s := &sized{}
	bytes := 0
	switch v := value.(type) {
	case string:
		s.text, bytes = v, len(v)
	case map[string]any:
		s.members = make(map[string]*sized, len(v))
		for name, member := range v {
			one := sizedOf(member)
			s.members[name], bytes = one, bytes+len(name)
			s.units += one.units
		}
	case []any:
		for _, item := range v {
			one := sizedOf(item)
			s.items = append(s.items, one)
			s.units += one.units
		}
	}
	s.units += bytes/unitBytes + (len(s.items)+len(s.members))/8
	return s
}

// A coster sums the cost of validating a value, and stops above the bound. It counts all schemas that package
// jsonschema may apply, and more, because it continues after a failure.
type coster struct {
	schemas map[*jsonschema.Schema]weight
	left    int
	depth   int
}

// A weight is the cost of applying one schema, and the target of its reference.
type weight struct {
	units    int
	matching int // instructions of the pattern
	ref      *jsonschema.Schema
	names    int // instructions of the patterns of patternProperties
}

// affords reports whether a value can be validated against a schema within the rest of the bound.
func (c *coster) affords(s *jsonschema.Schema, v *sized) bool {
	c.apply(s, v)
	return c.left >= 0
}

func (c *coster) apply(s *jsonschema.Schema, v *sized) {
	if s == nil || c.left < 0 {
		return
	}
	w := c.schemas[s]
	c.left -= 1 + w.units + v.units + w.matching*len(v.text)/unitMatching + c.depth/4
	if c.depth++; c.depth > maxApplied {
		c.left = -1
	}
	c.apply(w.ref, v)
	for _, same := range toSameValue(s) {
		c.apply(same, v)
	}
	c.applyToMembers(s, v)
	c.applyToItems(s, v)
	c.depth--
}

// toSameValue returns the schemas in a schema that apply to the same value.
func toSameValue(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{s.Not, s.If, s.Then, s.Else}
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		all = append(all, list...)
	}
	for _, members := range []map[string]*jsonschema.Schema{s.DependentSchemas, s.DependencySchemas} {
		for _, one := range members {
			all = append(all, one)
		}
	}
	return all
}

func (c *coster) applyToMembers(s *jsonschema.Schema, v *sized) {
	for name, member := range v.members {
		c.apply(s.Properties[name], member)
		for _, one := range s.PatternProperties {
			c.apply(one, member)
		}
		c.left -= c.schemas[s].names * len(name) / unitMatching
		c.apply(s.AdditionalProperties, member)
		c.apply(s.UnevaluatedProperties, member)
		if s.PropertyNames != nil {
			c.apply(s.PropertyNames, &sized{text: name, units: len(name) / unitBytes})
		}
		if c.left < 0 {
			return
		}
	}
}

func (c *coster) applyToItems(s *jsonschema.Schema, v *sized) {
	for i, item := range v.items {
		for _, list := range [][]*jsonschema.Schema{s.PrefixItems, s.ItemsArray} {
			if i < len(list) {
				c.apply(list[i], item)
			}
		}
		for _, one := range []*jsonschema.Schema{s.Items, s.AdditionalItems, s.Contains, s.UnevaluatedItems} {
			c.apply(one, item)
		}
		if c.left < 0 {
			return
		}
	}
}

// weightsOf returns the costs of the schemas in a schema, and the targets of references.
func weightsOf(root *jsonschema.Schema) (map[*jsonschema.Schema]weight, error) {
	w := &weigher{weights: map[*jsonschema.Schema]weight{}, at: map[string]*jsonschema.Schema{}}
	w.walk(root, "#")
	if w.err != nil {
		return nil, w.err
	}
	for s, own := range w.weights {
		if s.Ref == "" {
			continue
		}
		target, ok := w.at[pointer(s.Ref)]
		if !ok {
			return nil, &ReferenceError{Ref: s.Ref}
		}
		own.ref = target
		w.weights[s] = own
	}
	return w.weights, nil
}

// pointer returns the JSON pointer of a reference, as [weigher.walk] writes it.
func pointer(ref string) string {
	unescaped, err := url.PathUnescape(ref)
	if err != nil {
		return ref
	}
	return unescaped
}

// A ReferenceError reports a reference that does not lead to a schema in the same document, by its path.
type ReferenceError struct{ Ref string }

func (e *ReferenceError) Error() string {
	return fmt.Sprintf("the schema refers to %q: only references such as #/$defs/NAME, to schemas in it, are followed", e.Ref)
}

// maxPatterns bounds the instructions of all patterns of a schema.
const maxPatterns = 2 * pattern.MaxInstructions

// A weigher walks through a schema.
type weigher struct {
	weights  map[*jsonschema.Schema]weight
	at       map[string]*jsonschema.Schema // by JSON pointer
	patterns int
	err      error
}

func (w *weigher) walk(s *jsonschema.Schema, at string) {
	if s == nil || w.err != nil {
		return
	}
	w.at[at] = s
	switch {
	case s.DynamicRef != "":
		w.err = &ReferenceError{Ref: s.DynamicRef}
	case s.ID != "" && at != "#": // references in it are relative to it
		w.err = &ReferenceError{Ref: s.ID}
	}
	own := weight{units: len(at)/unitBytes + enumUnits(s.Enum) + len(s.Required)/8, matching: w.pattern(s.Pattern)}
	if s.Const != nil {
		own.units += sizedOf(*s.Const).units
	}
	for name := range s.PatternProperties {
		own.names += w.pattern(name)
	}
	for _, names := range []map[string][]string{s.DependentRequired, s.DependencyStrings} {
		for _, list := range names {
			own.units += 1 + len(list)
		}
	}
	w.weights[s] = own
	w.walkInto(s, at)
}

// enumUnits returns the cost of comparing a value with all values of an enum.
func enumUnits(enum []any) int {
	units := len(enum)
	for _, value := range enum {
		units += sizedOf(value).units
	}
	return units
}

// pattern counts the instructions of a pattern, and adds them to the total.
func (w *weigher) pattern(expression string) int {
	if expression == "" || w.err != nil {
		return 0
	}
	n, err := pattern.Instructions(expression)
	if w.patterns += n; err == nil && (n > pattern.MaxInstructions || w.patterns > maxPatterns) {
		w.err = &pattern.SizeError{Instructions: w.patterns, Max: pattern.MaxInstructions}
	}
	return n
}

// escape writes a name as a token of a JSON pointer.
var escape = strings.NewReplacer("~", "~0", "/", "~1")

func (w *weigher) walkInto(s *jsonschema.Schema, at string) {
	for name, one := range map[string]*jsonschema.Schema{
		"items": s.Items, "additionalItems": s.AdditionalItems, "contains": s.Contains, "unevaluatedItems": s.UnevaluatedItems,
		"additionalProperties": s.AdditionalProperties, "propertyNames": s.PropertyNames, "unevaluatedProperties": s.UnevaluatedProperties,
		"not": s.Not, "if": s.If, "then": s.Then, "else": s.Else, "contentSchema": s.ContentSchema,
	} {
		w.walk(one, at+"/"+name)
	}
	for name, list := range map[string][]*jsonschema.Schema{
		"prefixItems": s.PrefixItems, "items": s.ItemsArray, "allOf": s.AllOf, "anyOf": s.AnyOf, "oneOf": s.OneOf,
	} {
		for i, one := range list {
			w.walk(one, fmt.Sprintf("%s/%s/%d", at, name, i))
		}
	}
	for name, members := range map[string]map[string]*jsonschema.Schema{
		"$defs": s.Defs, "definitions": s.Definitions, "properties": s.Properties, "patternProperties": s.PatternProperties,
		"dependentSchemas": s.DependentSchemas, "dependencies": s.DependencySchemas,
	} {
		for key, one := range members {
			w.walk(one, at+"/"+name+"/"+escape.Replace(key))
		}
	}
}
