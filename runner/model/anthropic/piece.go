package anthropic

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
)

// A piece is a block of an answer while it comes.
type piece struct {
	index  int
	kind   string
	fields map[string]json.RawMessage // as it began
	isDone bool

	grown     strings.Builder // its text, its thinking or the input of a call
	signature strings.Builder
	citations []json.RawMessage
	more      map[string]*strings.Builder // other fields that come in pieces
	call      int                         // its number, of a call
}

// newPiece is the block that begins with these fields.
func newPiece(index int, raw json.RawMessage) *piece {
	p := &piece{index: index}
	_ = json.Unmarshal(raw, &p.fields) // what is no object is an empty block
	if p.fields == nil {
		p.fields = map[string]json.RawMessage{}
	}
	p.kind = p.text("type")
	return p
}

func (p *piece) text(field string) string { return httpapi.String(p.fields[field]) }

// fragment is a text that may continue in the deltas of the block.
func (p *piece) fragment(field string) string { return httpapi.ParseFragment(p.fields[field]) }

// isPlain reports whether a piece of thinking is no more than its text and its
// signature.
func (p *piece) isPlain() bool {
	for name := range p.fields {
		if name != "type" && name != "thinking" && name != "signature" {
			return false
		}
	}
	return p.kind == typeThinking
}

// isEmpty reports whether a piece of thinking says and proves nothing.
func (p *piece) isEmpty() bool {
	return p.kind == typeThinking && p.grown.Len() == 0 && p.signature.Len() == 0
}

// swallow takes a delta that is not of the kinds that are shown as they come.
// What is not known is added to the field of its name, as all are written; raw is
// the whole event.
func (p *piece) swallow(d delta, raw []byte) {
	if d.Type == typeInputDelta {
		p.grown.WriteString(d.Input)
		return
	}
	if d.Type == typeCitationsDelta {
		p.citations = append(p.citations, d.Citation)
		return
	}
	var event struct {
		Delta map[string]json.RawMessage `json:"delta"`
	}
	_ = json.Unmarshal(raw, &event) // decoded before
	for name, value := range event.Delta {
		p.extend(name, value)
	}
}

// extend adds to a field: text to its text, anything else in its place.
func (p *piece) extend(name string, value json.RawMessage) {
	more := httpapi.ParseFragment(value)
	switch {
	case name == "type", string(value) == `""`:
		return
	case more == "":
		p.fields[name] = value
		return
	}
	if p.more == nil {
		p.more = map[string]*strings.Builder{}
	}
	whole := p.more[name]
	if whole == nil {
		whole = &strings.Builder{}
		whole.WriteString(p.fragment(name))
		p.more[name] = whole
	}
	whole.WriteString(more)
}

// raw is the whole block as it came.
func (p *piece) raw() json.RawMessage {
	switch p.kind {
	case typeText:
		p.fields["text"] = quoted(httpapi.Whole(p.grown.String()))
	case typeThinking:
		p.fields["thinking"], p.fields["signature"] = quoted(httpapi.Whole(p.grown.String())), quoted(p.signature.String())
	default:
		if input := bytes.TrimSpace([]byte(httpapi.Whole(p.grown.String()))); len(input) > 0 {
			p.fields["input"] = arguments(unquoted(input))
		}
	}
	for name, whole := range p.more {
		p.fields[name] = quoted(httpapi.Whole(whole.String()))
	}
	if len(p.citations) > 0 {
		p.fields["citations"] = list(p.citations)
	}
	data, _ := httpapi.Encode(p.fields) // decoded before: cannot fail
	return data
}

// quoted is a text as JSON.
func quoted(s string) json.RawMessage {
	data, _ := httpapi.Encode(s) // a string: cannot fail
	return data
}

// list is a list as JSON.
func list(items []json.RawMessage) json.RawMessage {
	data, _ := httpapi.Encode(items) // decoded before: cannot fail
	return data
}

// unquoted is the object that a JSON string holds, as some send the input of a
// call, or the value itself.
func unquoted(value []byte) []byte {
	inner := bytes.TrimSpace([]byte(httpapi.String(value)))
	if len(inner) > 0 && inner[0] == '{' && json.Valid(value) && json.Valid(inner) {
		return inner
	}
	return value
}
