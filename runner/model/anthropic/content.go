package anthropic

import (
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
