package template

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Template is a text that was taken apart once, to be bound to many inputs. It
// is for texts that become something else than prose, where each value is to be
// escaped as its place needs it. It never changes.
type Template struct{ segments []segment }

// Parse takes a text apart.
func Parse(text string) (*Template, error) {
	segments, err := parse(text)
	if err != nil {
		return nil, err
	}
	return &Template{segments: segments}, nil
}

// Paths are the places of the text where values go, in their order.
func (t *Template) Paths() []Path {
	var all []Path
	for _, s := range t.segments {
		if s.path != nil {
			all = append(all, *s.path)
		}
	}
	return all
}

// Alone reports whether the text is one ${{ }} and nothing else.
func (t *Template) Alone() bool {
	paths, words := 0, 0
	for _, s := range t.segments {
		words += len(s.words)
		if s.path != nil {
			paths++
		}
	}
	return paths == 1 && words == 0
}

// An Input is the values that templates are bound to. It is read once, as far as
// paths go into it; it is not safe for concurrent use.
type Input struct{ root *value }

// NewInput reads an input, a JSON object; empty is the same as {}.
func NewInput(input json.RawMessage) (*Input, error) {
	if len(bytes.TrimSpace(input)) == 0 {
		input = json.RawMessage("{}")
	}
	if !json.Valid(input) {
		return nil, fmt.Errorf("the input is not JSON: %q", shorten(string(input)))
	}
	return &Input{root: &value{raw: input}}, nil
}

// Value is the value that a path leads to, as JSON, and whether there is one.
func (in *Input) Value(p Path) (json.RawMessage, bool) {
	found, err := in.root.at(p)
	if err != nil {
		return nil, false
	}
	return found.raw, true
}

// Bind is the text with the values of an input, each as place writes it from the
// JSON that it is. A path that has no value is an [*Error]; what place returns
// is one at the place of the value.
func (t *Template) Bind(in *Input, place func(value json.RawMessage) (string, error)) (string, error) {
	var b strings.Builder
	for _, s := range t.segments {
		b.WriteString(s.words)
		if s.path == nil {
			continue
		}
		found, err := in.root.at(*s.path)
		if err != nil {
			return "", err
		}
		written, err := place(found.raw)
		if err != nil {
			return "", s.path.errorf("%s %v", s.path, err)
		}
		b.WriteString(written)
		if b.Len() > MaxText {
			return "", s.path.errorf("the text has more than %d bytes with the value of %s", MaxText, s.path)
		}
	}
	return b.String(), nil
}

// Certain reports whether every input of a JSON Schema has a value where the
// path leads: each name on the way is required.
func (p Path) Certain(schema json.RawMessage) bool {
	for _, k := range p.keys {
		var s struct {
			Required   []string                   `json:"required"`
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if k.index >= 0 || json.Unmarshal(schema, &s) != nil || !slices.Contains(s.Required, k.name) {
			return false
		}
		schema = s.Properties[k.name]
	}
	return true
}
