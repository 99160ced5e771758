// Package schema checks the schemas that users write for the input and output of an agent: Agent.spec.input.schema and
// Agent.spec.output.schema.
//
// They are in the structural subset of JSON Schema that Kubernetes accepts for its own resources, because expressions
// that read such a value are type-checked against it: every value has one type, known without looking at another. So
// there is no $ref, oneOf or not.
package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The bounds of a schema.
const (
	MaxBytes = 16 << 10
	MaxDepth = 8
)

// An Error describes what is wrong in a schema, with its path.
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

// Check returns an *Error for the first error in a schema, in the order of the paths, or nil.
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

// whole checks conditions that involve several keywords.
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

// defaultFits validates the default against its schema.
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

// child returns the node of a member.
func (n *node) child(names ...string) *node {
	return &node{keywords: n.keywords, at: append(slices.Clip(n.at), names...), depth: n.depth + 1}
}

func (n *node) errorf(format string, args ...any) *Error {
	return &Error{Path: strings.Join(n.at, "."), Problem: fmt.Sprintf(format, args...)}
}

// A format is a value of the keyword "format" that is checked.
type format struct {
	is   func(string) bool
	what string // for the author of the value
}

// formats are the formats that are checked, by name, as JSON Schema defines them (2020-12, Validation, section 7.3).
// Any other format is ignored.
var formats = map[string]format{
	"date-time": {isTime(time.RFC3339), "a date and time with a zone, such as 2030-01-31T09:00:00Z"},
	"date":      {isTime(time.DateOnly), "a date, such as 2030-01-31"},
	"time":      {isTime("15:04:05Z07:00"), "a time with a zone, such as 09:00:00Z"},
	"email":     {isEmail, "an email address"},
	"hostname":  {isHostname, "a host name"},
	"ipv4":      {isIPv4, "an IPv4 address"},
	"ipv6":      {isIPv6, "an IPv6 address"},
	"uri":       {isURI, "a URI with its scheme, such as https://example.com/"},
	"uuid":      {uuid.MatchString, "a UUID"},
}

func isTime(layout string) func(string) bool {
	return func(s string) bool {
		_, err := time.Parse(layout, strings.ToUpper(s)) // t and z may be lower case
		return err == nil
	}
}

func isEmail(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s
}

func isIPv4(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}

func isIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == ""
}

func isURI(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.IsAbs() && !strings.ContainsAny(s, " \"<>\\^`{|}")
}

var (
	uuid  = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	label = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z-]{0,61}[0-9A-Za-z])?$`)
)

func isHostname(s string) bool {
	if len(s) > 253 {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if !label.MatchString(part) {
			return false
		}
	}
	return true
}

// A defaulted has the parts of a schema that matter for its defaults.
type defaulted struct {
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	Items      json.RawMessage            `json:"items"`
}

// Fill returns a JSON value with the defaults of a schema for each missing property of an object in it. A value that is
// not JSON, or does not match the schema, is filled as far as it can be read: [Validate] reports what is wrong with it.
func Fill(schema, value json.RawMessage) json.RawMessage {
	filled, changed := fill(schema, value)
	if !changed {
		return value
	}
	return filled
}

func fill(schema, value json.RawMessage) (json.RawMessage, bool) {
	var s defaulted
	if json.Unmarshal(schema, &s) != nil {
		return value, false
	}
	switch trimmed := bytes.TrimSpace(value); {
	case len(trimmed) == 0:
		return value, false
	case trimmed[0] == '{' && len(s.Properties) > 0:
		return s.fillObject(value)
	case trimmed[0] == '[' && len(s.Items) > 0:
		return s.fillArray(value)
	}
	return value, false
}

func (d *defaulted) fillObject(value json.RawMessage) (json.RawMessage, bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil {
		return value, false
	}
	changed := false
	for name, property := range d.Properties {
		given, found := members[name]
		if !found {
			if given = defaultOf(property); given == nil {
				continue
			}
			changed = true
		}
		filled, more := fill(property, given)
		members[name], changed = filled, changed || more
	}
	return encoded(members, value, changed)
}

func (d *defaulted) fillArray(value json.RawMessage) (json.RawMessage, bool) {
	var items []json.RawMessage
	if json.Unmarshal(value, &items) != nil {
		return value, false
	}
	changed := false
	for i, item := range items {
		filled, more := fill(d.Items, item)
		items[i], changed = filled, changed || more
	}
	return encoded(items, value, changed)
}

// encoded returns v as JSON, or the original if nothing changed.
func encoded(v any, original json.RawMessage, changed bool) (json.RawMessage, bool) { //nolint:revive // two outcomes of one walk
	if !changed {
		return original, false
	}
	out, err := json.Marshal(v)
	if err != nil {
		return original, false
	}
	return out, true
}

// defaultOf returns the default of a schema, or nil.
func defaultOf(schema json.RawMessage) json.RawMessage {
	var s struct {
		Default json.RawMessage `json:"default"`
	}
	_ = json.Unmarshal(schema, &s) // Check reports a schema that is none
	return s.Default
}

// Filled returns the schema of the values that [Fill] returns: properties with a default are required, because they are
// never absent. A schema that it cannot read is returned unchanged.
func Filled(schema json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	var s defaulted
	if json.Unmarshal(schema, &members) != nil || json.Unmarshal(schema, &s) != nil {
		return schema
	}
	if len(s.Items) > 0 {
		members["items"] = Filled(s.Items)
	}
	if len(s.Properties) > 0 {
		members["properties"], members["required"] = s.filled()
	}
	out, err := json.Marshal(members)
	if err != nil {
		return schema
	}
	return out
}

// filled returns the properties, and the names of properties that are never absent.
func (d *defaulted) filled() (properties, required json.RawMessage) {
	names := append([]string{}, d.Required...)
	for name, property := range d.Properties {
		if defaultOf(property) != nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
		d.Properties[name] = Filled(property)
	}
	slices.Sort(names)
	properties, _ = json.Marshal(d.Properties) // JSON already: cannot fail
	required, _ = json.Marshal(names)
	return properties, required
}
