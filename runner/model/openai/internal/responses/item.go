package responses

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// An item is an item of an answer while it comes.
type item struct {
	index   int // -1: the server sends none
	id      string
	kind    string
	isDone  bool
	text    strings.Builder // of a message, as it was emitted
	emitted int             // bytes of its thinking
	section int             // of its thinking
	phase   string          // of a message

	call      int // its number, of a call; -1: it is not kept
	name      string
	callID    string
	arguments strings.Builder
}

// isSentBack reports whether items of this kind are sent back.
func (i *item) isSentBack() bool {
	return i.kind == typeMessage || i.kind == typeCall || i.kind == typeReasoning
}

// begin handles the start of an item, which may have a whole call.
func (a *answer) begin(index int, raw json.RawMessage) *item {
	var h outputItem
	if httpapi.Unmarshal(raw, &h) != nil || h.Type == "" {
		return nil
	}
	it := a.find(index, h.ID, h.Type)
	if it != nil && !it.isDone && index >= 0 && !it.isAnother(&h) && !differ(it.callID, h.CallID) {
		return it // it was announced before
	}
	return a.add(index, &h)
}

// add adds an item.
func (a *answer) add(index int, h *outputItem) *item {
	if len(a.items) == maxItems {
		a.isTruncated = true
		return nil
	}
	it := &item{index: index, id: h.ID, kind: h.Type, phase: string(h.Phase)}
	a.items = append(a.items, it)
	if it.kind == typeCall {
		a.beginCall(it, h)
	}
	return it
}

// find returns the last item of a kind with an index and an id, or otherwise with the index: some gateways change the
// ids from event to event, others use one index for all items. Without an index it returns the item with the id, or an
// unfinished message or reasoning. Nil: there is none.
func (a *answer) find(index int, id, kind string) *item {
	var found *item
	for _, it := range slices.Backward(a.items) {
		switch {
		case it.kind != kind, index >= 0 && it.index != index:
		case it.id == id, index >= 0 && id == "":
			return it
		case found == nil && index >= 0:
			found = it
		}
	}
	if n := len(a.items); found == nil && index < 0 && kind != typeCall && n > 0 && a.items[n-1].kind == kind && !a.items[n-1].isDone {
		return a.items[n-1]
	}
	return found
}

// at returns the item of an event. If there is none, it begins one of that kind; nil: there is no space for it.
func (a *answer) at(e *event, kind string) *item {
	if it := a.find(e.Index, e.ItemID, kind); it != nil {
		return it
	}
	return a.add(e.Index, &outputItem{Type: kind, ID: e.ItemID})
}

// finish handles a complete item, and emits the parts that were not streamed.
func (a *answer) finish(index int, raw json.RawMessage) {
	var h outputItem
	if httpapi.Unmarshal(raw, &h) != nil || h.Type == "" {
		return
	}
	it := a.announced(index, &h)
	if it == nil {
		it = a.add(index, &h)
	}
	a.complete(it, &h, raw)
}

// announced returns the item whose whole an event has; nil: it is another one.
func (a *answer) announced(index int, h *outputItem) *item {
	if it := a.sameCall(h); it != nil {
		return it
	}
	for _, it := range a.items {
		if it.kind == typeCall && h.Type == typeCall && h.CallID != "" && it.callID == h.CallID && !it.isDone {
			return it
		}
	}
	it := a.find(index, h.ID, h.Type)
	switch {
	case it == nil, it.isAnother(h):
		return nil
	case it.isDone && (differ(it.callID, h.CallID) || it.id == "" && it.content() != h.content()):
		return nil
	}
	return it
}

// complete handles the complete form of an item that had begun; the item may be nil.
func (a *answer) complete(it *item, h *outputItem, raw json.RawMessage) {
	if it == nil || it.isDone {
		return
	}
	it.isDone = true
	switch it.kind {
	case typeMessage:
		a.finishMessage(it, h)
	case typeCall:
		a.finishCall(it, h)
	case typeReasoning:
		a.finishReasoning(it, h, raw)
	default: // of a tool that the provider runs
		a.emit(model.Delta{Kind: step.PartOpaque, Provider: partData{Type: it.kind}.encode()})
	}
}

// finishMessage emits the phase of a message, and the rest of its text if pieces were lost.
func (a *answer) finishMessage(it *item, h *outputItem) {
	a.isRefusal = a.isRefusal || h.isRefusal()
	if rest, isRest := strings.CutPrefix(h.text(), httpapi.Whole(it.text.String())); isRest {
		a.addText(it, rest)
	}
	if phase := cmp.Or(string(h.Phase), it.phase); phase != "" && a.lastText == it {
		a.emit(model.Delta{Kind: step.PartText, Provider: partData{Type: typeMessage, Phase: phase}.encode()})
	}
}

// finishReasoning emits a reasoning item in the form in which it is sent back.
func (a *answer) finishReasoning(it *item, h *outputItem, raw json.RawMessage) {
	if it.emitted == 0 {
		parts := h.Summary
		if len(parts) == 0 {
			parts = h.Content
		}
		for i, c := range parts {
			a.addThinking(it, i, string(c.Text))
		}
	}
	if data := h.stored(raw); data != nil {
		a.output += len(h.Encrypted)
		a.emit(model.Delta{Provider: data})
	}
}

// beginCall takes the start of a call.
func (a *answer) beginCall(it *item, h *outputItem) {
	if a.calls == maxCalls {
		a.isTruncated = true
		it.call = -1
		return
	}
	it.call = a.calls
	a.calls++
	a.visible = true
	it.name, it.callID = h.Name, h.CallID
	d := model.CallDelta{Index: it.call, Name: h.Name}
	if h.CallID != "" {
		d.Provider = partData{Type: typeCall, CallID: h.CallID}.encode()
	}
	a.output += len(h.Name)
	a.emit(model.Delta{Call: &d})
	a.setArguments(it, argumentsText(h.Arguments))
}

// finishCall emits the parts of a call that were not streamed.
func (a *answer) finishCall(it *item, h *outputItem) {
	if it.call < 0 {
		return
	}
	d := model.CallDelta{Index: it.call}
	if h.Name != "" && h.Name != it.name {
		d.Name = h.Name
	}
	if h.CallID != "" && h.CallID != it.callID {
		d.Provider = partData{Type: typeCall, CallID: h.CallID}.encode()
	}
	if d.Name != "" || d.Provider != nil {
		a.emit(model.Delta{Call: &d})
	}
	a.setArguments(it, argumentsText(h.Arguments))
}

// addArguments emits a piece of the arguments of a call.
func (a *answer) addArguments(it *item, piece string) {
	if it == nil || it.call < 0 || piece == "" {
		return
	}
	it.arguments.WriteString(piece)
	a.output += len(piece)
	a.emit(model.Delta{Call: &model.CallDelta{Index: it.call, Args: piece}})
}

// setArguments replaces the streamed arguments by the complete ones, if they differ.
func (a *answer) setArguments(it *item, whole string) {
	if it == nil || it.call < 0 || whole == "" || whole == it.arguments.String() {
		return
	}
	replace := it.arguments.Len() > 0
	it.arguments.Reset()
	it.arguments.WriteString(whole)
	a.output += len(whole)
	a.emit(model.Delta{Call: &model.CallDelta{Index: it.call, Args: whole, Replace: replace}})
}

// argumentsText returns arguments as text: some servers write an object.
func argumentsText(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '{' {
		return string(raw)
	}
	return httpapi.String(raw)
}
