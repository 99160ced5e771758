package template

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MaxText bounds a text with its values, in bytes: a large value may be named
// many times.
const MaxText = 1 << 20

// Bind is a text with the values of an input, a JSON object; empty is the same
// as {}. A path that has no value is an [*Error].
func Bind(text string, input json.RawMessage) (string, error) {
	segments, err := parse(text)
	if err != nil {
		return "", err
	}
	if len(bytes.TrimSpace(input)) == 0 {
		input = json.RawMessage("{}")
	}
	if !json.Valid(input) {
		return "", fmt.Errorf("the input is not JSON: %q", shorten(string(input)))
	}
	values := &value{raw: input}
	var b strings.Builder
	for _, s := range segments {
		b.WriteString(s.words)
		if s.path == nil {
			continue
		}
		found, err := values.at(*s.path)
		if err != nil {
			return "", err
		}
		b.WriteString(found.text())
		if b.Len() > MaxText {
			return "", s.path.errorf("the text has more than %d bytes with the value of %s", MaxText, s.path)
		}
	}
	return b.String(), nil
}

// Literal is what to write for a text that is not to be read: Bind of it is the
// text, whatever the input. It is for the whole of a text; between two of them
// that are put together a ${{ may come about.
func Literal(text string) string { return strings.ReplaceAll(text, opens, string(escape)+opens) }

// Paths are the places of a text where values go, in their order.
func Paths(text string) ([]Path, error) {
	segments, err := parse(text)
	if err != nil {
		return nil, err
	}
	var all []Path
	for _, s := range segments {
		if s.path != nil {
			all = append(all, *s.path)
		}
	}
	return all, nil
}

// A value is a piece of an input. It is read only as far as paths go into it,
// and once.
type value struct {
	raw     json.RawMessage // valid
	members map[string]*value
	items   []*value
	opened  bool
}

// at is the value that a path leads to.
func (v *value) at(p Path) (*value, error) {
	for i, k := range p.keys {
		v.open()
		switch {
		case k.index < 0 && v.members[k.name] != nil:
			v = v.members[k.name]
		case k.index >= 0 && k.index < len(v.items):
			v = v.items[k.index]
		default:
			return nil, p.errorf("%s has no value: %s %s", p, describe(p.keys[:i]), v.lacks(k))
		}
	}
	return v, nil
}

// open reads the members or the items.
func (v *value) open() {
	if v.opened {
		return
	}
	v.opened = true
	switch bytes.TrimSpace(v.raw)[0] {
	case '{':
		var members map[string]json.RawMessage
		_ = json.Unmarshal(v.raw, &members) // it is a valid object
		v.members = make(map[string]*value, len(members))
		for name, raw := range members {
			v.members[name] = &value{raw: raw}
		}
	case '[':
		var items []json.RawMessage
		_ = json.Unmarshal(v.raw, &items) // it is a valid array
		for _, raw := range items {
			v.items = append(v.items, &value{raw: raw})
		}
	}
}

// lacks says why there is nothing under a key.
func (v *value) lacks(k key) string {
	switch {
	case k.index >= 0 && v.members != nil:
		return "is an object, not an array"
	case k.index >= 0 && bytes.TrimSpace(v.raw)[0] == '[':
		return fmt.Sprintf("has %d items", len(v.items))
	case k.index < 0 && v.members != nil:
		return "has " + known(slices.Sorted(maps.Keys(v.members)))
	case k.index < 0 && v.items != nil:
		return "is an array, not an object"
	}
	return "is " + shorten(v.text())
}

// text is the value as it is put into a text.
func (v *value) text() string {
	var s string
	if bytes.TrimSpace(v.raw)[0] == '"' && json.Unmarshal(v.raw, &s) == nil {
		return s
	}
	var b bytes.Buffer
	_ = json.Compact(&b, v.raw) // it is valid
	return b.String()
}

// known lists names for people.
func known(names []string) string {
	const most = 10
	switch {
	case len(names) == 0:
		return "nothing in it"
	case len(names) > most:
		names = append(names[:most:most], "…")
	}
	return shorten(strings.Join(names, ", "))
}

// shorten bounds what an error repeats of an input.
func shorten(s string) string {
	const most = 200
	if runes := []rune(s[:min(len(s), 4*most)]); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}
