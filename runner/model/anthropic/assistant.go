package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// noThinking is sent where a provider requires thinking and there was none.
const noThinking = "(no thinking)"

// assistant returns the content of a message of the assistant, usually one answer.
func (w *writer) assistant(group []step.Step) []any {
	var list []any
	for _, s := range group {
		a := assistantMessage{writer: w, step: s, own: w.own(s), positioned: map[int]bool{}}
		list = append(list, a.content()...)
	}
	if len(list) == 0 || isThinking(list[len(list)-1]) { // both are refused
		list = append(list, textBlock(emptyText))
	}
	return list
}

// isThinking reports whether a block is thinking.
func isThinking(b any) bool {
	switch b := b.(type) {
	case *blockParam:
		return b.Type == typeThinking
	case json.RawMessage:
		return areThinking([]json.RawMessage{b})
	}
	return false
}

// own reports whether this model wrote a step.
func (w *writer) own(s step.Step) bool { return w.name == "" || s.Model == "" || s.Model == w.name }

// An assistantMessage builds the content for one earlier answer.
type assistantMessage struct {
	*writer
	step       step.Step
	own        bool
	positioned map[int]bool // the calls that are written
	list       []any
}

// content returns the parts of the answer, with each call at its recorded position, and
// the calls without one at the end.
func (a *assistantMessage) content() []any {
	thinkingBlocks := a.thinkingBlocks(a.step)
	if len(thinkingBlocks) == 0 && a.needsThinking && len(a.step.Calls) > 0 {
		text := noThinking
		a.list = append(a.list, &blockParam{Type: "thinking", Thinking: &text})
	}
	for i, p := range a.step.Parts {
		switch {
		case p.Kind == step.PartThinking:
			a.list = append(a.list, thinkingBlocks[i]...)
		case p.Kind == step.PartOpaque && a.own:
			a.opaque(p.Provider)
		case p.Kind == step.PartText && !isBlank(p.Text):
			a.list = append(a.list, textBlock(p.Text))
		}
	}
	for i := range a.step.Calls {
		a.call(i, nil)
	}
	return a.list
}

// call writes the n-th call, once.
func (a *assistantMessage) call(n int, caller json.RawMessage) {
	if n < 0 || n >= len(a.step.Calls) || a.positioned[n] {
		return
	}
	a.positioned[n] = true
	c := a.step.Calls[n]
	a.list = append(a.list, &blockParam{
		Type: "tool_use", ID: model.WireID(c.ID), Name: model.WireName(c.Name), Input: arguments(c.Args), Caller: caller,
	})
}

// opaque adds a block of the provider unchanged, or applies an annotation.
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
		a.addCitations(b.Note.Citations)
	case b.Type == "":
	case strings.HasSuffix(b.Type, "_tool_use") && len(a.step.Calls) == 0 && !a.answers(b.ID):
		// The answer was cut before the provider's tool returned a result, without
		// which the block would be refused.
	default:
		a.list = append(a.list, raw)
	}
}

// addCitations adds citations to the last text.
func (a *assistantMessage) addCitations(citations json.RawMessage) {
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

// thinkingBlocks returns the blocks of thinking of a step that are sent back, by the index
// of their part.
func (w *writer) thinkingBlocks(s step.Step) map[int][]any {
	if !w.own(s) || s.Seq <= w.refusedThrough && w.refusedThrough > 0 {
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

// addThinking returns the blocks of a part of thinking: those that were recorded, or one of
// its text and signature.
func (w *writer) addThinking(p step.Part) []any {
	var blocks []json.RawMessage
	if json.Unmarshal(p.Provider, &blocks) == nil && len(blocks) > 0 && areThinking(blocks) {
		return asContent(blocks)
	}
	if p.Signature == "" && (w.dialect.echo == echoSigned || isBlank(p.Text)) {
		return nil
	}
	return []any{&blockParam{Type: "thinking", Thinking: &p.Text, Signature: p.Signature}}
}

func areThinking(blocks []json.RawMessage) bool {
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
