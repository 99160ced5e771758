package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// unspoken stands for thinking where a provider demands some and there is none.
const unspoken = "(no thinking)"

// assistant is an assistant's turn: of one answer, as a rule.
func (w *writer) assistant(group []step.Step) []any {
	var list []any
	for _, s := range group {
		a := assistantMessage{writer: w, step: s, own: w.own(s), placed: map[int]bool{}}
		list = append(list, a.content()...)
	}
	if len(list) == 0 || isThought(list[len(list)-1]) { // both are refused
		list = append(list, say(nothing))
	}
	return list
}

// isThought reports whether a block is of thinking.
func isThought(b any) bool {
	switch b := b.(type) {
	case *blockParam:
		return b.Type == typeThinking
	case json.RawMessage:
		return areThoughts([]json.RawMessage{b})
	}
	return false
}

// own reports whether this model wrote a step.
func (w *writer) own(s step.Step) bool { return w.name == "" || s.Model == "" || s.Model == w.name }

// An assistantTurn is one answer on its way back.
type assistantMessage struct {
	*writer
	step   step.Step
	own    bool
	placed map[int]bool // the calls that are written
	list   []any
}

// content is an answer as it was said: its parts, each call where it stood, and
// at the end the calls of which nobody says where they stood.
func (a *assistantMessage) content() []any {
	thoughts := a.thoughts(a.step)
	if len(thoughts) == 0 && a.demands && len(a.step.Calls) > 0 {
		text := unspoken
		a.list = append(a.list, &blockParam{Type: "thinking", Thinking: &text})
	}
	for i, p := range a.step.Parts {
		switch {
		case p.Kind == step.PartThinking:
			a.list = append(a.list, thoughts[i]...)
		case p.Kind == step.PartOpaque && a.own:
			a.opaque(p.Provider)
		case p.Kind == step.PartText && !isBlank(p.Text):
			a.list = append(a.list, say(p.Text))
		}
	}
	for i := range a.step.Calls {
		a.call(i, nil)
	}
	return a.list
}

// call writes the n-th call, once.
func (a *assistantMessage) call(n int, caller json.RawMessage) {
	if n < 0 || n >= len(a.step.Calls) || a.placed[n] {
		return
	}
	a.placed[n] = true
	c := a.step.Calls[n]
	a.list = append(a.list, &blockParam{
		Type: "tool_use", ID: model.WireID(c.ID), Name: model.WireName(c.Name), Input: arguments(c.Args), Caller: caller,
	})
}

// opaque writes a block of the provider's own as it came, or applies an annotation.
func (a *assistantMessage) opaque(raw json.RawMessage) {
	var b struct {
		Type string      `json:"type"`
		ID   string      `json:"id"`
		Note *annotation `json:"note"`
	}
	switch err := json.Unmarshal(raw, &b); {
	case err != nil:
	case b.Note != nil && b.Note.Call != nil:
		a.call(*b.Note.Call, b.Note.Caller)
	case b.Note != nil:
		a.cite(b.Note.Citations)
	case b.Type == "":
	case strings.HasSuffix(b.Type, "_tool_use") && len(a.step.Calls) == 0 && !a.answers(b.ID):
		// The answer was cut before its provider's tool answered: it would be
		// refused without.
	default:
		a.list = append(a.list, raw)
	}
}

// cite puts citations on the text just written.
func (a *assistantMessage) cite(citations json.RawMessage) {
	if len(a.list) == 0 {
		return
	}
	if text, ok := a.list[len(a.list)-1].(*blockParam); ok && text.Type == "text" {
		text.Citations = citations
	}
}

// answers reports whether the provider's own call of that id has a result in
// the step.
func (a *assistantMessage) answers(id string) bool {
	for _, p := range a.step.Parts {
		var b struct {
			ToolUseID string `json:"tool_use_id"`
		}
		if p.Kind == step.PartOpaque && json.Unmarshal(p.Provider, &b) == nil && id != "" && b.ToolUseID == id {
			return true
		}
	}
	return false
}

// thoughts are the blocks of thinking of a step that go back, by the part that
// they are from.
func (w *writer) thoughts(s step.Step) map[int][]any {
	if !w.own(s) || s.Seq <= w.forgotten && w.forgotten > 0 {
		return nil
	}
	found := map[int][]any{}
	for i, p := range s.Parts {
		if p.Kind != step.PartThinking {
			continue
		}
		if blocks := w.addThinking(p); len(blocks) > 0 {
			found[i] = blocks
		}
	}
	return found
}

// thought is a part of thinking as it came: several blocks, or the one that its
// text and its signature are.
func (w *writer) addThinking(p step.Part) []any {
	var blocks []json.RawMessage
	if json.Unmarshal(p.Provider, &blocks) == nil && len(blocks) > 0 && areThoughts(blocks) {
		return verbatim(blocks)
	}
	if p.Signature == "" && (w.dialect.echo == echoSigned || isBlank(p.Text)) {
		return nil
	}
	return []any{&blockParam{Type: "thinking", Thinking: &p.Text, Signature: p.Signature}}
}

func areThoughts(blocks []json.RawMessage) bool {
	for _, raw := range blocks {
		var b struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(raw, &b) != nil || b.Type != typeThinking && b.Type != typeRedacted {
			return false
		}
	}
	return true
}
