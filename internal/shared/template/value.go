package template

import (
	"bytes"
	"encoding/json"
)

// A Value is JSON that is read only as far as paths lead into it, each part once. It is not
// safe for concurrent use.
type Value struct {
	raw     json.RawMessage // valid
	members map[string]*Value
	items   []*Value
	opened  bool
}

// NewValue returns the Value of valid JSON.
func NewValue(raw json.RawMessage) *Value { return &Value{raw: bytes.TrimSpace(raw)} }

// At returns the value that a path leads to, as JSON, and whether there is one.
func (v *Value) At(p Path) (json.RawMessage, bool) {
	for _, k := range p {
		v.open()
		switch {
		case k.Index < 0 && v.members[k.Name] != nil:
			v = v.members[k.Name]
		case k.Index >= 0 && k.Index < len(v.items):
			v = v.items[k.Index]
		default:
			return nil, false
		}
	}
	return v.raw, true
}

// open reads the members or the items.
func (v *Value) open() {
	if v.opened {
		return
	}
	v.opened = true
	switch v.raw[0] {
	case '{':
		var members map[string]json.RawMessage
		_ = json.Unmarshal(v.raw, &members) // it is a valid object
		v.members = make(map[string]*Value, len(members))
		for name, raw := range members {
			v.members[name] = NewValue(raw)
		}
	case '[':
		var items []json.RawMessage
		_ = json.Unmarshal(v.raw, &items) // it is a valid array
		for _, raw := range items {
			v.items = append(v.items, NewValue(raw))
		}
	}
}

// Text returns a value of JSON as it is inserted into a text: a string as it is, any other
// value compact.
func Text(raw json.RawMessage) string {
	var s string
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte(`"`)) && json.Unmarshal(raw, &s) == nil {
		return s
	}
	var b bytes.Buffer
	_ = json.Compact(&b, raw) // it is valid
	return b.String()
}
