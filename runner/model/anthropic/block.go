package anthropic

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
)

// A block is a content block of an answer while it comes.
type block struct {
	index  int
	kind   string
	fields map[string]json.RawMessage // as it began
	isDone bool

	content   strings.Builder // its text, its thinking or the input of a call
	signature strings.Builder
	citations []json.RawMessage
	more      map[string]*strings.Builder // other fields that come in pieces
	call      int                         // its number, of a call
}

// newBlock returns the block that begins with these fields.
func newBlock(index int, raw json.RawMessage) *block {
	b := &block{index: index}
	_ = json.Unmarshal(raw, &b.fields) // what is no object is an empty block
	if b.fields == nil {
		b.fields = map[string]json.RawMessage{}
	}
	b.kind = b.text("type")
	return b
}

func (b *block) text(field string) string { return httpapi.String(b.fields[field]) }

// fragment returns a text that may continue in the deltas of the block.
func (b *block) fragment(field string) string { return httpapi.ParseFragment(b.fields[field]) }

// isPlain reports whether a block of thinking is no more than its text and its
// signature.
func (b *block) isPlain() bool {
	for name := range b.fields {
		if name != "type" && name != "thinking" && name != "signature" {
			return false
		}
	}
	return b.kind == typeThinking
}

// caller returns the data of a call that a tool of the provider made; nil if the model did.
func (b *block) caller() json.RawMessage {
	var caller struct {
		Type string `json:"type"`
	}
	raw := b.fields["caller"]
	if httpapi.Unmarshal(raw, &caller) != nil || caller.Type == "" || caller.Type == "direct" {
		return nil
	}
	return partData{Caller: raw}.encode()
}

// isEmpty reports whether a block of thinking has neither text nor signature.
func (b *block) isEmpty() bool {
	return b.kind == typeThinking && b.content.Len() == 0 && b.signature.Len() == 0
}

// addOther adds a delta of a kind that is not emitted immediately. Unknown fields are added to the field of the same
// name; raw is the whole event.
func (b *block) addOther(d delta, raw []byte) {
	if d.Type == typeInputDelta {
		b.content.WriteString(string(d.Input))
		return
	}
	if d.Type == typeCitationsDelta {
		b.citations = append(b.citations, d.Citation)
		return
	}
	var event struct {
		Delta map[string]json.RawMessage `json:"delta"`
	}
	_ = json.Unmarshal(raw, &event) // decoded before
	for name, value := range event.Delta {
		b.extend(name, value)
	}
}

// extend appends text to a text field; any other value replaces the field.
func (b *block) extend(name string, value json.RawMessage) {
	more := httpapi.ParseFragment(value)
	switch {
	case name == "type", string(value) == `""`:
		return
	case more == "":
		b.fields[name] = value
		return
	}
	if b.more == nil {
		b.more = map[string]*strings.Builder{}
	}
	whole := b.more[name]
	if whole == nil {
		whole = &strings.Builder{}
		whole.WriteString(b.fragment(name))
		b.more[name] = whole
	}
	whole.WriteString(more)
}

// raw returns the complete block in the form of the provider.
func (b *block) raw() json.RawMessage {
	switch b.kind {
	case typeText:
		b.fields["text"] = quoted(httpapi.Whole(b.content.String()))
	case typeThinking:
		b.fields["thinking"], b.fields["signature"] = quoted(httpapi.Whole(b.content.String())), quoted(b.signature.String())
	default:
		if input := bytes.TrimSpace([]byte(httpapi.Whole(b.content.String()))); len(input) > 0 {
			b.fields["input"] = arguments(unquoted(input))
		}
	}
	for name, whole := range b.more {
		b.fields[name] = quoted(httpapi.Whole(whole.String()))
	}
	if len(b.citations) > 0 {
		b.fields["citations"] = list(b.citations)
	}
	data, _ := httpapi.Encode(b.fields) // decoded before: cannot fail
	return data
}

// quoted returns a text as JSON.
func quoted(s string) json.RawMessage {
	data, _ := httpapi.Encode(s) // a string: cannot fail
	return data
}

// list returns a list as JSON.
func list(items []json.RawMessage) json.RawMessage {
	data, _ := httpapi.Encode(items) // decoded before: cannot fail
	return data
}

// unquoted returns the object that a JSON string holds, as some send the input of a
// call, or the value itself.
func unquoted(value []byte) []byte {
	inner := bytes.TrimSpace([]byte(httpapi.String(value)))
	if len(inner) > 0 && inner[0] == '{' && json.Valid(value) && json.Valid(inner) {
		return inner
	}
	return value
}
