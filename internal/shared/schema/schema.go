// Package schema checks the schemas that people write for what an agent takes
// and gives: Agent.spec.input.schema and Agent.spec.output.schema.
//
// They are in the structural subset of JSON Schema that Kubernetes accepts for
// its own resources, because expressions that read such a value are type-checked
// against it: every value has one type, known without looking at another. So
// there is no $ref, oneOf or not.
package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What a schema may have at most.
const (
	MaxBytes = 16 << 10
	MaxDepth = 8
)

// An Error says where in a schema something is wrong, and what.
type Error struct {
	Path    string // such as "properties.files.items"; empty: the whole
	Problem string
}

func (e *Error) Error() string {
	if e.Path == "" {
		return "the schema " + e.Problem
	}
	return e.Path + " " + e.Problem
}

// A node is one schema within the schema, with the path to it.
type node struct {
	keywords map[string]keyword
	at       []string
	depth    int
	members  map[string]json.RawMessage
	kind     string // the value of "type"
}

// Check returns an *Error for the first thing that makes raw no schema of ours,
// in the order of the paths.
func Check(raw []byte) error {
	if len(raw) > MaxBytes {
		return &Error{Problem: fmt.Sprintf("has %d bytes; at most %d are allowed", len(raw), MaxBytes)}
	}
	// A concrete nil would be a non-nil error.
	root := node{keywords: keywords(), depth: 1}
	if e := root.check(raw); e != nil {
		return e
	}
	if _, err := Compile(raw); err != nil { // such as of all patterns together
		return &Error{Problem: "cannot be used: " + err.Error()}
	}
	return nil
}

func (n *node) check(raw []byte) *Error {
	if n.depth > MaxDepth {
		return n.errorf("is nested too deep; at most %d levels are allowed", MaxDepth)
	}
	if err := json.Unmarshal(raw, &n.members); err != nil || n.members == nil {
		return n.errorf("must be a JSON object")
	}
	if e := n.readType(); e != nil {
		return e
	}
	for _, name := range slices.Sorted(maps.Keys(n.members)) {
		if e := n.keyword(name); e != nil {
			return e
		}
	}
	return n.whole()
}

// types are the values that "type" may have.
var types = []string{"array", "boolean", "integer", "number", "object", "string"}

func (n *node) readType() *Error {
	raw, ok := n.members["type"]
	switch {
	case !ok:
		// What is refused says more than what is missing beside it.
		for _, name := range slices.Sorted(maps.Keys(n.members)) {
			if _, known := n.keywords[name]; !known {
				return n.keyword(name)
			}
		}
		return n.errorf("needs a type: one of %s", strings.Join(types, ", "))
	case json.Unmarshal(raw, &n.kind) != nil || !slices.Contains(types, n.kind):
		return n.child("type").errorf("must be one of %s", strings.Join(types, ", "))
	case n.depth == 1 && n.kind != "object":
		return n.child("type").errorf("must be object: the value as a whole has named parts")
	}
	return nil
}

// keyword checks one member of a schema.
func (n *node) keyword(name string) *Error {
	k, ok := n.keywords[name]
	switch {
	case !ok && instead[name] != "":
		return n.child(name).errorf("is not supported: %s", instead[name])
	case !ok:
		return n.child(name).errorf("is not supported")
	case k.of != "" && !slices.Contains(strings.Fields(k.of), n.kind):
		return n.child(name).errorf("is for the type %s, not for %s", strings.ReplaceAll(k.of, " ", " or "), n.kind)
	}
	return k.check(n, name)
}

// whole checks what one keyword cannot know of another.
func (n *node) whole() *Error {
	for _, name := range n.required() {
		if _, ok := n.properties()[name]; !ok {
			return n.child("required").errorf("names %q, which is not in properties", name)
		}
	}
	if n.kind == "array" && n.members["items"] == nil {
		return n.errorf("needs items: what the array has in it")
	}
	for _, limits := range bounds {
		low, lower := n.number(limits[0])
		high, upper := n.number(limits[1])
		if lower && upper && low > high {
			return n.child(limits[0]).errorf("is greater than %s", limits[1])
		}
	}
	return n.defaultFits()
}

// defaultFits checks the default against the schema that it stands in.
func (n *node) defaultFits() *Error {
	value, ok := n.members["default"]
	if !ok {
		return nil
	}
	schema, err := json.Marshal(n.members)
	if err == nil {
		err = Validate(schema, Fill(schema, value))
	}
	if err != nil {
		return n.child("default").errorf("does not fit: %v", err)
	}
	return nil
}

var bounds = [][2]string{
	{"minimum", "maximum"},
	{"minLength", "maxLength"},
	{"minItems", "maxItems"},
	{"minProperties", "maxProperties"},
}

func (n *node) properties() map[string]json.RawMessage {
	var of map[string]json.RawMessage
	_ = json.Unmarshal(n.members["properties"], &of) // checked by its keyword
	return of
}

func (n *node) required() []string {
	var names []string
	_ = json.Unmarshal(n.members["required"], &names) // checked by its keyword
	return names
}

func (n *node) number(name string) (float64, bool) {
	var v *float64
	if json.Unmarshal(n.members[name], &v) != nil || v == nil {
		return 0, false
	}
	return *v, true
}

// child is the place of a member.
func (n *node) child(names ...string) *node {
	return &node{keywords: n.keywords, at: append(slices.Clip(n.at), names...), depth: n.depth + 1}
}

func (n *node) errorf(format string, args ...any) *Error {
	return &Error{Path: strings.Join(n.at, "."), Problem: fmt.Sprintf(format, args...)}
}
