package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// noThinking is sent if a provider requires thinking and there was none.
const noThinking = "(no thinking)"

// assistant returns the content of a message of the assistant, usually one answer.
func (w *writer) assistant(group []step.Step) []any {
	var list []any
	for _, s := range group {
		a := assistantMessage{writer: w, step: withoutNotes(s.ForModel(w.name))}
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

// An assistantMessage builds the content for one earlier answer.
type assistantMessage struct {
	*writer
	step step.Step
	list []any
}

// content returns the parts of the answer in their order.
func (a *assistantMessage) content() []any {
	if a.needsThinking && len(a.step.Calls) > 0 && !a.sendsThinking(a.step) {
		text := noThinking
		a.list = append(a.list, &blockParam{Type: "thinking", Thinking: &text})
	}
	for p, call := range a.step.Content() {
		switch {
		case call != nil:
			a.list = append(a.list, &blockParam{
				Type: "tool_use", ID: model.WireID(call.ID), Name: model.WireName(call.Name), Input: arguments(call.Args),
				Caller: dataOf(p).Caller,
			})
		case p.Kind == step.PartThinking:
			a.list = append(a.list, a.thinkingBlocks(a.step, p)...)
		case p.Kind == step.PartOpaque:
			a.opaque(p.Provider)
		case p.Kind == step.PartText && !isBlank(p.Text):
			a.list = append(a.list, &blockParam{Type: "text", Text: p.Text, Citations: dataOf(p).Citations})
		}
	}
	return a.list
}

// opaque adds a block of the provider unchanged.
func (a *assistantMessage) opaque(raw json.RawMessage) {
	var b struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	}
	switch err := json.Unmarshal(raw, &b); {
	case err != nil, b.Type == "":
	case strings.HasSuffix(b.Type, "_tool_use") && len(a.step.Calls) == 0 && !a.answers(b.ID):
		// The answer was cut before the provider's tool returned a result, without
		// which the block would be refused.
	default:
		a.list = append(a.list, raw)
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

// sendsThinking reports whether any thinking of an answer is sent back.
func (w *writer) sendsThinking(s step.Step) bool {
	return slices.ContainsFunc(s.Parts, func(p step.Part) bool {
		return p.Kind == step.PartThinking && len(w.thinkingBlocks(s, p)) > 0
	})
}

// thinkingBlocks returns the blocks of a part of thinking that are sent back: the recorded blocks, or one with its text
// and signature.
func (w *writer) thinkingBlocks(s step.Step, p step.Part) []any {
	if s.Seq <= w.refusedThrough && w.refusedThrough > 0 {
		return nil
	}
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
