// Package requests shows the requests of a Run to a user, and reads the values that the user types.
package requests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// A Form is a JSON Schema whose values a user can type one after another: an object with declared
// properties, or a single value.
type Form struct {
	Schema json.RawMessage
	fields []formField
	// Single is whether the value is the value of the only field, and not an object.
	Single bool
}

// A formField is one value of a form.
type formField struct {
	name     string // empty if the form is a single value
	schema   json.RawMessage
	required bool
	about    fieldSchema
}

// fieldSchema is the part of a value's schema that a form shows.
type fieldSchema struct {
	Type        any               `json:"type"`
	Enum        []json.RawMessage `json:"enum"`
	Default     json.RawMessage   `json:"default"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
}

// composed are keywords of schemas that a user cannot fill in field by field.
var composed = []string{"$ref", "allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "dependentSchemas", "dependentRequired"}

// FormOf returns the form of a schema; false: its value can only be written as JSON.
func FormOf(text string) (Form, bool) {
	var top map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &top) != nil || isComposed(top) {
		return Form{}, false
	}
	if _, err := schema.Compile(json.RawMessage(text)); err != nil {
		return Form{}, false
	}
	f := Form{Schema: json.RawMessage(text)}
	if _, is := top["properties"]; !is {
		var about fieldSchema
		if json.Unmarshal(f.Schema, &about) != nil || about.Enum == nil && !isScalar(about.Type) {
			return Form{}, false
		}
		f.Single, f.fields = true, []formField{{schema: f.Schema, required: true, about: about}}
		return f, true
	}
	var required []string
	_ = json.Unmarshal(top["required"], &required) // absent, or of another form: none is required
	names, properties := inOrder(top["properties"])
	for _, name := range names {
		field := formField{name: name, schema: properties[name], required: slices.Contains(required, name)}
		var keywords map[string]json.RawMessage
		if json.Unmarshal(field.schema, &keywords) != nil || isComposed(keywords) || json.Unmarshal(field.schema, &field.about) != nil {
			return Form{}, false
		}
		f.fields = append(f.fields, field)
	}
	return f, len(f.fields) > 0
}

func isComposed(keywords map[string]json.RawMessage) bool {
	return slices.ContainsFunc(composed, func(keyword string) bool { return keywords[keyword] != nil })
}

func isScalar(kind any) bool {
	name, _ := kind.(string)
	return slices.Contains([]string{"string", "integer", "number", "boolean"}, name)
}

// inOrder returns the members of a JSON object, and their names in the order of the text.
func inOrder(object json.RawMessage) ([]string, map[string]json.RawMessage) {
	var names []string
	members := map[string]json.RawMessage{}
	decoder := json.NewDecoder(bytes.NewReader(object))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, nil
	}
	for decoder.More() {
		token, err := decoder.Token()
		name, is := token.(string)
		var member json.RawMessage
		if err != nil || !is || decoder.Decode(&member) != nil {
			return nil, nil
		}
		if _, again := members[name]; !again {
			names = append(names, name)
		}
		members[name] = member
	}
	return names, members
}

// value returns a text as JSON that fits the schema of the field.
func (f formField) value(text string) (json.RawMessage, error) {
	asText, _ := json.Marshal(text) // a string always encodes
	candidates := []json.RawMessage{json.RawMessage(text), asText}
	if f.about.Type == "string" || f.about.Type == nil && f.about.Enum != nil {
		slices.Reverse(candidates)
	}
	switch strings.ToLower(text) {
	case "y", "yes":
		candidates = append(candidates, json.RawMessage("true"))
	case "n", "no":
		candidates = append(candidates, json.RawMessage("false"))
	}
	for _, c := range candidates {
		if json.Valid(c) && schema.Validate(f.schema, c) == nil {
			return c, nil
		}
	}
	first := candidates[0]
	if !json.Valid(first) {
		first = asText
	}
	return nil, schema.Validate(f.schema, first)
}

// ValueOf returns the value of a Decision that the arguments of a command line mean: JSON, a text,
// or NAME=VALUE for fields of the schema. What does not fit is returned as it is, and refused later
// with the schema.
func ValueOf(r *v1alpha1.PendingRequest, args []string) (string, error) {
	f, isForm := FormOf(r.Schema)
	switch {
	case len(args) > 1 && !isForm:
		return "", exit.Usagef("the answer is one text, and these are %d words: write it in quotes", len(args))
	case len(args) == 0:
		return "", nil
	case !isForm, len(args) == 1 && schema.Validate(f.Schema, schema.Fill(f.Schema, json.RawMessage(args[0]))) == nil:
		return args[0], nil
	case f.Single && len(args) > 1:
		return "", exit.Usagef("request %s asks for one value, and these are %d: write it in quotes", r.ID, len(args))
	case f.Single:
		return f.typed(0, args[0]), nil
	case len(args) == 1 && isObject(args[0]):
		return args[0], nil
	case len(args) == 1 && !strings.Contains(args[0], "=") && len(f.fields) == 1:
		return objectOf(map[string]json.RawMessage{f.fields[0].name: json.RawMessage(f.typed(0, args[0]))}), nil
	case len(args) == 1 && !strings.Contains(args[0], "="):
		return args[0], nil
	}
	return f.pairs(args)
}

func isObject(text string) bool {
	return strings.HasPrefix(strings.TrimSpace(text), "{") && json.Valid([]byte(text))
}

// typed returns a text as a value of the field's type, or as a string if it is not one.
func (f Form) typed(i int, text string) string {
	field := f.fields[i]
	if value, err := field.value(text); err == nil {
		return string(value)
	}
	if field.about.Type != "string" && json.Valid([]byte(text)) {
		return text
	}
	asText, _ := json.Marshal(text) // a string always encodes
	return string(asText)
}

// pairs returns the object of arguments of the form NAME=VALUE.
func (f Form) pairs(args []string) (string, error) {
	values := map[string]json.RawMessage{}
	for _, arg := range args {
		name, text, found := strings.Cut(arg, "=")
		i := slices.IndexFunc(f.fields, func(field formField) bool { return field.name == name })
		switch {
		case !found:
			return "", exit.Usagef("%q: write NAME=VALUE, with one of these names: %s", arg, f.names())
		case i < 0:
			return "", exit.Usagef("the request asks for no value %s. There are: %s%s", name, f.names(), template.Similar(name, f.nameList()))
		case values[name] != nil:
			return "", exit.Usagef("%s is given twice: leave out one of them", name)
		}
		value, err := f.fields[i].value(text)
		if err != nil {
			return "", exit.Usagef("nothing was decided: %s=%s: %s", name, text, untrusted.Line(err.Error(), MaxShownError))
		}
		values[name] = value
	}
	return objectOf(values), nil
}

// MaxShownError bounds what is shown of an error that quotes a schema, in bytes.
const MaxShownError = 1024

func objectOf(values map[string]json.RawMessage) string {
	data, _ := json.Marshal(values) // all of them are valid JSON
	return string(data)
}

func (f Form) nameList() []string {
	var names []string
	for _, field := range f.fields {
		names = append(names, field.name)
	}
	return names
}

func (f Form) names() string { return untrusted.Line(strings.Join(f.nameList(), ", "), MaxShownError) }

// A FormAsker asks a user for the values of a form.
type FormAsker struct {
	Out io.Writer
	// Read prints a question and returns the line that the user types.
	Read func(question string) (string, error)
}

// EmptyForm is the value of a form of which the user left out all fields.
const EmptyForm = "{}"

// Ask asks for each field, and again if a value does not fit. It returns the value of the Decision;
// empty: the user answers later. A user who knows JSON may write the whole value at the first field, so
// that the value need not fit the schema as a whole.
func (a FormAsker) Ask(f Form) (string, error) {
	values := map[string]json.RawMessage{}
	for i := 0; i < len(f.fields); {
		field := f.fields[i]
		a.show(field)
		line, err := a.Read(field.question())
		line = strings.TrimSpace(line)
		switch {
		case err != nil:
			return "", err
		case line == "" && field.isNeeded():
			return "", nil
		case line == "":
			i++
			continue
		case i == 0 && !f.Single && isObject(line):
			return line, nil
		}
		value, err := field.chosen(line)
		if err != nil {
			fmt.Fprintln(a.Out, untrusted.Line(err.Error(), MaxShownError))
			continue
		}
		if f.Single {
			return string(value), nil
		}
		values[field.name] = value
		i++
	}
	return objectOf(values), nil
}

// isNeeded reports whether the form cannot be sent without the field.
func (f formField) isNeeded() bool { return f.required && f.about.Default == nil }

// show prints the meaning and the choices of a field, each line after a bar.
func (a FormAsker) show(f formField) {
	lines := slices.DeleteFunc([]string{f.about.Title, f.about.Description}, func(s string) bool { return s == "" })
	for i, choice := range f.about.Enum {
		lines = append(lines, strconv.Itoa(i+1)+"  "+untrusted.Line(plain(choice), MaxShownError)) // on one line: it forges no other
	}
	title := "Value"
	if f.name != "" {
		title = "Value " + untrusted.Quote(f.name, maxShownName)
	}
	terminal.Block(a.Out, title, strings.Join(lines, "\n"))
}

// maxShownName bounds how much is shown of the name of a field, in bytes.
const maxShownName = 60

// question returns the prompt for the value.
func (f formField) question() string {
	name := "Value"
	if f.name != "" {
		name = untrusted.Quote(f.name, maxShownName)
	}
	var hints []string
	if kind, is := f.about.Type.(string); is && f.about.Enum == nil {
		hints = append(hints, map[string]string{"boolean": "yes or no", "integer": "a whole number", "number": "a number", "string": "text"}[kind])
		if !isScalar(kind) {
			hints[0] = "JSON"
		}
	}
	if n := len(f.about.Enum); n > 0 {
		hints = append(hints, fmt.Sprintf("1 to %d", n))
	}
	switch {
	case f.about.Default != nil:
		hints = append(hints, "Enter: "+untrusted.Quote(plain(f.about.Default), maxShownName))
	case f.required:
		hints = append(hints, "Enter: answer later")
	default:
		hints = append(hints, "Enter: leave out")
	}
	return name + " [" + strings.Join(hints, "; ") + "]: "
}

// chosen returns the value for a line: a number selects a choice of [FormAsker.show], any other line must equal a
// choice. A model chooses the values: a number always selects the value that is shown beside it.
func (f formField) chosen(line string) (json.RawMessage, error) {
	if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(f.about.Enum) {
		return f.about.Enum[n-1], nil
	}
	value, err := f.value(line)
	if err != nil && line == `""` {
		return f.value("")
	}
	return value, err
}

// plain returns a JSON string without quotes, and other JSON unchanged.
func plain(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}
