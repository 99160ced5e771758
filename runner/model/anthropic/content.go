package anthropic

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// beginBlock handles the start of a block, which may have all of it.
func (a *answer) beginBlock(index int, raw json.RawMessage) {
	if len(a.blocks) == maxBlocks {
		a.isTruncated = true
		return
	}
	a.begun = true
	b := newBlock(index, raw)
	a.blocks = append(a.blocks, b)
	switch b.kind {
	case typeText:
		a.addDelta(index, delta{Type: typeTextDelta, Text: httpapi.Fragment(b.fragment("text"))}, nil)
		_ = json.Unmarshal(b.fields["citations"], &b.citations) // null, as a rule
		delete(b.fields, "citations")
	case typeThinking:
		a.addDelta(index, delta{Type: typeThinkingDelta, Thinking: httpapi.Fragment(b.fragment("thinking"))}, nil)
		a.addDelta(index, delta{Type: typeSignatureDelta, Signature: b.text("signature")}, nil)
	case typeToolUse:
		a.beginToolCall(b)
	}
}

// beginToolCall handles the start of a call. It may already have the input, as an object or as the text of one.
func (a *answer) beginToolCall(b *block) {
	if a.calls == maxCalls {
		a.isTruncated = true
		b.call = -1
		return
	}
	b.call = a.calls
	a.calls++
	a.visible = true
	a.endThinking()
	name := b.text("name")
	a.output += len(name)
	a.emit(model.Delta{Call: &model.CallDelta{Index: b.call, Name: name, Provider: b.caller()}})
	input := string(unquoted(b.fields["input"]))
	if strings.TrimSpace(input) == "{}" || input == "null" || input == `""` {
		return
	}
	if inner := httpapi.String([]byte(input)); inner != "" {
		input = inner
	}
	b.content.WriteString(input)
	a.output += len(input)
	a.emit(model.Delta{Call: &model.CallDelta{Index: b.call, Args: input}})
}

// addDelta adds a delta to its block; raw is the event that it came in.
func (a *answer) addDelta(index int, d delta, raw []byte) {
	b := a.at(index, d)
	if b == nil {
		return
	}
	a.output += len(d.Text) + len(d.Thinking) + len(d.Input)
	switch {
	case b.kind == typeText && d.Type == typeTextDelta:
		b.content.WriteString(string(d.Text))
		a.emitText(string(d.Text))
	case b.kind == typeThinking && d.Type == typeThinkingDelta && d.Thinking != "":
		b.content.WriteString(string(d.Thinking))
		a.emit(model.Delta{Thinking: string(d.Thinking)})
	case b.kind == typeThinking && d.Type == typeSignatureDelta && d.Signature != "":
		b.signature.WriteString(d.Signature)
		a.emit(model.Delta{Signature: d.Signature})
	case b.kind == typeToolUse && d.Type == typeInputDelta:
		a.addInput(b, string(d.Input))
	case b.kind != typeThinking && b.kind != typeToolUse:
		b.addOther(d, raw)
	}
}

// addInput adds to a call's input. If the whole came in advance, the deltas replace
// it.
func (a *answer) addInput(b *block, input string) {
	if input == "" || b.call < 0 {
		return
	}
	if b.fields["input"] != nil && b.content.Len() > 0 {
		b.content.Reset()
		a.emit(model.Delta{Call: &model.CallDelta{Index: b.call, Replace: true}})
	}
	delete(b.fields, "input")
	b.content.WriteString(input)
	a.emit(model.Delta{Call: &model.CallDelta{Index: b.call, Args: input}})
}

// at returns the open block with an index. If there is none, a block of text or thinking is opened.
func (a *answer) at(index int, d delta) *block {
	if b := a.last(index); b != nil {
		return b
	}
	switch d.Type {
	case typeTextDelta:
		a.beginBlock(index, json.RawMessage(`{"type":"text"}`))
	case typeThinkingDelta, typeSignatureDelta:
		a.beginBlock(index, json.RawMessage(`{"type":"thinking"}`))
	default:
		return nil
	}
	if a.isTruncated {
		return nil
	}
	return a.blocks[len(a.blocks)-1]
}

// last returns the last block of that index; nil if there is none.
func (a *answer) last(index int) *block {
	for _, b := range slices.Backward(a.blocks) {
		if b.index == index {
			return b
		}
	}
	return nil
}

// close takes the end of a block.
func (a *answer) close(index int) {
	if b := a.last(index); b != nil {
		a.done(b)
	}
}

// done emits what is known only after the whole block.
func (a *answer) done(b *block) {
	if b.isDone {
		return
	}
	b.isDone = true
	switch b.kind {
	case typeThinking, typeRedacted:
		a.addThinking(b)
	case typeText:
		if len(b.citations) > 0 && b.content.Len() > 0 {
			a.emit(model.Delta{Kind: step.PartText, Provider: partData{Citations: list(b.citations)}.encode()})
		}
	case typeToolUse:
		a.unquote(b)
	case "":
	default:
		a.addOpaque(b.raw())
	}
}

// unquote replaces the input of a call that is the text of an object by the object.
func (a *answer) unquote(b *block) {
	input := strings.TrimSpace(httpapi.Whole(b.content.String()))
	if b.call < 0 || !strings.HasPrefix(input, `"`) {
		return
	}
	if object := string(unquoted([]byte(input))); object != input {
		a.emit(model.Delta{Call: &model.CallDelta{Index: b.call, Args: object, Replace: true}})
	}
}

// addThinking records a whole block of thinking as provider data, if it is one of several or cannot be read: then text
// and signature do not represent it.
func (a *answer) addThinking(b *block) {
	if b.isEmpty() {
		return
	}
	a.run = append(a.run, b.raw())
	a.needsBlocks = a.needsBlocks || len(a.run) > 1 || !b.isPlain()
}

// endThinking ends blocks of thinking that follow each other.
func (a *answer) endThinking() {
	if a.needsBlocks {
		a.emit(model.Delta{Provider: list(a.run)})
	}
	a.run, a.needsBlocks = nil, false
}

func (a *answer) emitText(text string) {
	if text == "" {
		return
	}
	a.endThinking()
	a.visible = true
	a.emit(model.Delta{Text: text})
}

// addOpaque emits a block that only its provider reads.
func (a *answer) addOpaque(raw json.RawMessage) {
	a.endThinking()
	a.output += len(raw)
	a.emit(model.Delta{Kind: step.PartOpaque, Provider: raw})
}

// partData is the Part.Provider of a text or a call.
type partData struct {
	Citations json.RawMessage `json:"citations,omitempty"` // of a text
	Caller    json.RawMessage `json:"caller,omitempty"`    // of a call: a tool of the provider that made it
}

func (d partData) encode() json.RawMessage {
	data, _ := httpapi.Encode(d) // raw values that were decoded before: cannot fail
	return data
}

// dataOf returns the data of a part; parts of another API have none.
func dataOf(p step.Part) (d partData) {
	_ = httpapi.Unmarshal(p.Provider, &d)
	return d
}

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

// A note is an opaque part in journals of earlier versions: the citations of the text before it, or the position and
// the caller of a call.
type note struct {
	partData
	Call *int `json:"call"`
}

// withoutNotes converts a step of an earlier version to the current form: the position of a call is a part, and data of
// a part is in the part.
func withoutNotes(s step.Step) step.Step {
	if !slices.ContainsFunc(s.Parts, func(p step.Part) bool { return noteOf(p) != nil }) {
		return s
	}
	parts, placed := s.Parts, 0
	s.Parts = nil
	for _, p := range parts {
		n := noteOf(p)
		switch last := len(s.Parts) - 1; {
		case n == nil:
			s.Parts = append(s.Parts, p)
		case n.Call != nil && *n.Call == placed: // notes are in the order of the calls
			placed++
			s.Parts = append(s.Parts, step.Part{Kind: step.PartCall, Provider: n.encode()})
		case n.Citations != nil && last >= 0 && s.Parts[last].Kind == step.PartText:
			s.Parts[last].Provider = n.encode()
		}
	}
	return s
}

// noteOf returns the note in a part, or nil. Blocks of providers have a type, notes have none.
func noteOf(p step.Part) *note {
	var b struct {
		Type string `json:"type"`
		Note *note  `json:"note"`
	}
	if p.Kind != step.PartOpaque || json.Unmarshal(p.Provider, &b) != nil || b.Type != "" {
		return nil
	}
	return b.Note
}
