package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
)

// begin takes the start of a block, which may be the whole of it.
func (a *answer) begin(index int, raw json.RawMessage) {
	if len(a.pieces) == maxPieces {
		a.cut = true
		return
	}
	a.begun = true
	p := newPiece(index, raw)
	a.pieces = append(a.pieces, p)
	switch p.kind {
	case typeText:
		a.grow(index, delta{Type: typeTextDelta, Text: p.fragment("text")}, nil)
		_ = json.Unmarshal(p.fields["citations"], &p.citations) // null, as a rule
		delete(p.fields, "citations")
	case typeThinking:
		a.grow(index, delta{Type: typeThinkingDelta, Thinking: p.fragment("thinking")}, nil)
		a.grow(index, delta{Type: typeSignatureDelta, Signature: p.text("signature")}, nil)
	case typeToolUse:
		a.beginCall(p)
	}
}

// beginCall takes the start of a call. Its input may be there already, as an
// object or as the text of one.
func (a *answer) beginCall(p *piece) {
	if a.calls == maxCalls {
		a.cut = true
		p.call = -1
		return
	}
	p.call = a.calls
	a.calls++
	a.visible = true
	var caller struct {
		Type string `json:"type"`
	}
	raw := p.fields["caller"]
	if httpapi.Unmarshal(raw, &caller) == nil && caller.Type != "" && caller.Type != "direct" {
		if a.callers == nil {
			a.callers = map[int]json.RawMessage{}
		}
		a.callers[p.call] = raw
	}
	name := p.text("name")
	a.said += len(name)
	a.emit(model.Delta{Call: &model.CallDelta{Index: p.call, Name: name}})
	input := string(unquoted(p.fields["input"]))
	if strings.TrimSpace(input) == "{}" || input == "null" || input == `""` {
		return
	}
	if inner := httpapi.String([]byte(input)); inner != "" {
		input = inner
	}
	p.grown.WriteString(input)
	a.said += len(input)
	a.emit(model.Delta{Call: &model.CallDelta{Index: p.call, Args: input}})
}

// grow takes a piece of a block; raw is the event that it came in.
func (a *answer) grow(index int, d delta, raw []byte) {
	p := a.at(index, d)
	if p == nil {
		return
	}
	a.said += len(d.Text) + len(d.Thinking) + len(d.Input)
	switch {
	case p.kind == typeText && d.Type == typeTextDelta:
		p.grown.WriteString(d.Text)
		a.speak(d.Text)
	case p.kind == typeThinking && d.Type == typeThinkingDelta && d.Thinking != "":
		a.point()
		p.grown.WriteString(d.Thinking)
		a.emit(model.Delta{Thinking: d.Thinking})
	case p.kind == typeThinking && d.Type == typeSignatureDelta && d.Signature != "":
		a.point()
		p.signature.WriteString(d.Signature)
		a.emit(model.Delta{Signature: d.Signature})
	case p.kind == typeToolUse && d.Type == typeInputDelta:
		a.growCall(p, d.Input)
	case p.kind != typeThinking && p.kind != typeToolUse:
		p.swallow(d, raw)
	}
}

// growCall takes a piece of a call's input. Where the whole came in advance, the
// pieces stand for it.
func (a *answer) growCall(p *piece, input string) {
	if input == "" || p.call < 0 {
		return
	}
	if p.fields["input"] != nil && p.grown.Len() > 0 {
		p.grown.Reset()
		a.emit(model.Delta{Call: &model.CallDelta{Index: p.call, Replace: true}})
	}
	delete(p.fields, "input")
	p.grown.WriteString(input)
	a.emit(model.Delta{Call: &model.CallDelta{Index: p.call, Args: input}})
}

// at is the open block of that index. Where none began, a text or thinking does.
func (a *answer) at(index int, d delta) *piece {
	if p := a.last(index); p != nil {
		return p
	}
	switch d.Type {
	case typeTextDelta:
		a.begin(index, json.RawMessage(`{"type":"text"}`))
	case typeThinkingDelta, typeSignatureDelta:
		a.begin(index, json.RawMessage(`{"type":"thinking"}`))
	default:
		return nil
	}
	if a.cut {
		return nil
	}
	return a.pieces[len(a.pieces)-1]
}

// last is the last block of that index; nil if there is none.
func (a *answer) last(index int) *piece {
	for _, p := range slices.Backward(a.pieces) {
		if p.index == index {
			return p
		}
	}
	return nil
}

// close takes the end of a block.
func (a *answer) close(index int) {
	if p := a.last(index); p != nil {
		a.done(p)
	}
}

// done passes on what only the whole of a block tells.
func (a *answer) done(p *piece) {
	if p.isDone {
		return
	}
	p.isDone = true
	switch p.kind {
	case typeThinking, typeRedacted:
		a.thought(p)
	case typeText:
		if len(p.citations) > 0 && p.grown.Len() > 0 {
			a.note(note{Citations: list(p.citations)}.encode())
		}
	case typeToolUse:
		a.unquote(p)
	case "":
	default:
		a.keep(p.raw())
	}
}

// unquote puts the object in place of a call's input that is the text of one.
func (a *answer) unquote(p *piece) {
	input := strings.TrimSpace(httpapi.Whole(p.grown.String()))
	if p.call < 0 || !strings.HasPrefix(input, `"`) {
		return
	}
	if object := string(unquoted([]byte(input))); object != input {
		a.emit(model.Delta{Call: &model.CallDelta{Index: p.call, Args: object, Replace: true}})
	}
}

// thought takes a whole block of thinking. Text and signature do not tell all of
// it where it is one of several, or cannot be read.
func (a *answer) thought(p *piece) {
	if p.isEmpty() {
		return
	}
	a.point()
	a.run = append(a.run, p.raw())
	a.runIsOdd = a.runIsOdd || len(a.run) > 1 || !p.isPlain()
}

// rest ends what was thought in one go, before something else is said.
func (a *answer) rest() {
	if a.runIsOdd {
		a.emit(model.Delta{Provider: list(a.run)})
	}
	a.run, a.runIsOdd = nil, false
}

func (a *answer) speak(text string) {
	if text == "" {
		return
	}
	a.point()
	a.rest()
	a.visible = true
	a.emit(model.Delta{Text: text})
}

// keep passes on a block that only its provider reads.
func (a *answer) keep(raw json.RawMessage) {
	a.point()
	a.note(raw)
}

// note passes on an opaque part.
func (a *answer) note(raw json.RawMessage) {
	a.rest()
	a.said += len(raw)
	a.emit(model.Delta{Opaque: raw})
}

// point tells where the calls so far stood, before something is said after them.
func (a *answer) point() {
	for ; a.placed < a.calls; a.placed++ {
		call := a.placed
		a.note(note{Call: &call, Caller: a.callers[call]}.encode())
	}
}
