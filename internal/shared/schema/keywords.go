package schema

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/deckhand-dev/deckhand/internal/shared/pattern"
)

// A keyword is a keyword that a schema may have.
type keyword struct {
	of    string // the types that it is for; empty: any
	check func(n *node, name string) *Error
}

// keywords returns all keywords that a schema may have.
func keywords() map[string]keyword {
	return map[string]keyword{
		"type":                 {check: anything},
		"title":                {check: text},
		"description":          {check: text},
		"default":              {check: anything}, // see whole
		"enum":                 {check: enum},
		"format":               {of: "string integer number", check: text},
		"pattern":              {of: "string", check: checkPattern},
		"minLength":            {of: "string", check: count},
		"maxLength":            {of: "string", check: count},
		"minimum":              {of: "integer number", check: number},
		"maximum":              {of: "integer number", check: number},
		"multipleOf":           {of: "integer number", check: number},
		"items":                {of: "array", check: items},
		"minItems":             {of: "array", check: count},
		"maxItems":             {of: "array", check: count},
		"properties":           {of: "object", check: properties},
		"additionalProperties": {of: "object", check: additional},
		"required":             {of: "object", check: required},
		"minProperties":        {of: "object", check: count},
		"maxProperties":        {of: "object", check: count},
	}
}

// instead has advice about keywords that are not supported.
var instead = map[string]string{
	"$ref":             "write the schema out where it is used",
	"$defs":            "write each schema out where it is used",
	"definitions":      "write each schema out where it is used",
	"oneOf":            "use one object with optional properties",
	"anyOf":            "use one object with optional properties",
	"allOf":            "write one object with all the properties",
	"const":            "use an enum with one value",
	"exclusiveMinimum": "use minimum",
	"exclusiveMaximum": "use maximum",
	"prefixItems":      "use an object with a property for each place",
	"uniqueItems":      "say it in the description",
	"nullable":         "leave the property out of required",
	"$schema":          "leave it out",
}

func anything(*node, string) *Error { return nil }

// value decodes a member into v. must describes the required value.
func value(n *node, name string, v any, must string) *Error {
	if err := json.Unmarshal(n.members[name], v); err != nil || string(n.members[name]) == "null" {
		return n.child(name).errorf("must be %s", must)
	}
	return nil
}

func text(n *node, name string) *Error {
	var v string
	return value(n, name, &v, "a string")
}

func number(n *node, name string) *Error {
	var v float64
	e := value(n, name, &v, "a number")
	if e == nil && name == "multipleOf" && v <= 0 {
		return n.child(name).errorf("must be greater than 0")
	}
	return e
}

func count(n *node, name string) *Error {
	var v uint32
	return value(n, name, &v, "a whole number, 0 or more")
}

func checkPattern(n *node, name string) *Error {
	var v string
	if e := value(n, name, &v, "a string"); e != nil {
		return e
	}
	err := pattern.Check(v)
	if size, large := errors.AsType[*pattern.SizeError](err); large {
		return n.child(name).errorf("is too large: %v", size)
	}
	if err != nil {
		return n.child(name).errorf("is not an RE2 expression: %v", err)
	}
	return nil
}

func enum(n *node, name string) *Error {
	var values []any
	if e := value(n, name, &values, "a list of values"); e != nil {
		return e
	}
	if len(values) == 0 {
		return n.child(name).errorf("must have a value")
	}
	for _, v := range values {
		if !has(n.kind, v) {
			return n.child(name).errorf("has a value that is not of type %s", n.kind)
		}
	}
	return nil
}

// has reports whether a value, as package json reads it, is of a type.
func has(kind string, v any) bool {
	switch v := v.(type) {
	case string:
		return kind == "string"
	case bool:
		return kind == "boolean"
	case float64:
		return kind == "number" || kind == "integer" && v == float64(int64(v))
	case []any:
		return kind == "array"
	case map[string]any:
		return kind == "object"
	}
	return false
}

// items checks the keyword items, which is a schema, or {} for items of any type.
func items(n *node, name string) *Error {
	var members map[string]json.RawMessage
	if json.Unmarshal(n.members[name], &members) == nil && members != nil && len(members) == 0 {
		return nil
	}
	return schemaOf(n, name)
}

func schemaOf(n *node, name string) *Error {
	return n.child(name).check(n.members[name])
}

func properties(n *node, name string) *Error {
	var of map[string]json.RawMessage
	if e := value(n, name, &of, "an object"); e != nil {
		return e
	}
	for _, property := range slices.Sorted(maps.Keys(of)) {
		if property == "" {
			return n.child(name).errorf("has a property without a name")
		}
		if e := n.child(name, property).check(of[property]); e != nil {
			return e
		}
	}
	return nil
}

// additional checks the keyword additionalProperties, which is true, false, or a schema if there are no properties: a
// value is a structure or a map, not both.
func additional(n *node, name string) *Error {
	var allowed bool
	if value(n, name, &allowed, "") == nil {
		return nil
	}
	if _, ok := n.members["properties"]; ok {
		return n.child(name).errorf("must be true or false where there are properties")
	}
	return schemaOf(n, name)
}

func required(n *node, name string) *Error {
	var names []string
	if e := value(n, name, &names, "a list of names"); e != nil {
		return e
	}
	seen := map[string]bool{}
	for _, r := range names {
		if seen[r] {
			return n.child(name).errorf("names %q twice", r)
		}
		seen[r] = true
	}
	return nil
}
