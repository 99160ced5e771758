package responses

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
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

// A closingItem is an item of the list that ends an answer.
type closingItem struct {
	outputItem

	index int
	raw   json.RawMessage
	known *item // the item of the answer that it repeats; nil: the stream did not have it
}

// An identity is a property that two copies of the same item have in common. An empty text identifies nothing.
type identity struct {
	ofItem    func(*item) string
	ofClosing func(*closingItem) string
}

// identities are in the order of their reliability. Gateways omit items from the closing list, change their order, and
// give them other ids. Items with nothing in common are paired in order, so that a call is added only if the list has
// more calls than the stream.
var identities = []identity{
	{func(it *item) string { return it.callID }, func(c *closingItem) string { return c.CallID }},
	{func(it *item) string { return it.id }, func(c *closingItem) string { return c.ID }},
	{(*item).content, func(c *closingItem) string { return c.content() }},
	{func(it *item) string { return strconv.Itoa(it.index) }, func(c *closingItem) string { return strconv.Itoa(c.index) }},
	{func(*item) string { return "any" }, func(*closingItem) string { return "any" }},
}

// content returns the text of a message, or a call with its arguments.
func (i *item) content() string {
	if i.kind == typeCall {
		return i.name + canonical(i.arguments.String())
	}
	return httpapi.Whole(i.text.String())
}

func (o *outputItem) content() string {
	if o.Type == typeCall {
		return o.Name + canonical(argumentsText(o.Arguments))
	}
	return o.text()
}

// isAnother reports whether an item of the same kind, index or position is a different item: it has another id and does
// not continue the present text. Ids alone do not count, since some gateways change them from event to event.
func (i *item) isAnother(h *outputItem) bool {
	if !differ(i.id, h.ID) && !differ(i.callID, h.CallID) {
		return false
	}
	switch i.kind {
	case typeCall:
		args, begun := argumentsText(h.Arguments), i.arguments.String()
		isOfCall := strings.HasPrefix(args, begun) || canonical(args) == canonical(begun)
		return differ(i.name, h.Name) || !isOfCall
	case typeMessage:
		return !strings.HasPrefix(h.text(), httpapi.Whole(i.text.String()))
	}
	return false
}

// differ reports whether both texts are present and different.
func differ(a, b string) bool { return a != "" && b != "" && a != b }

// text returns the text of a message; empty for any other item.
func (o *outputItem) text() string {
	if o.Type != typeMessage {
		return ""
	}
	var all strings.Builder
	for _, c := range o.Content {
		all.WriteString(string(c.Text) + string(c.Refusal))
	}
	return all.String()
}

// isRefusal reports whether a message has a refusal.
func (o *outputItem) isRefusal() bool {
	return slices.ContainsFunc(o.Content, func(c contentPart) bool { return c.Refusal != "" })
}

// canonical returns JSON in one form, and any other text as it is.
func canonical(text string) string {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return text
	}
	var out bytes.Buffer
	if json.NewEncoder(&out).Encode(value) != nil {
		return text
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// readClosing reads the closing list of an answer. It completes the items of the stream, and adds messages and calls
// that the stream did not have. If the stream had nothing, all items are added. Nothing is added twice.
func (a *answer) readClosing(output []json.RawMessage) {
	isStreamed := len(a.items) > 0
	list := a.pair(output)
	hasAllText := isStreamed && a.hasText(list)
	for _, c := range list {
		if hasAllText && c.Type == typeMessage {
			a.isRefusal = a.isRefusal || c.isRefusal()
			c.Content = nil
		}
		switch {
		case c.known != nil && !c.known.isSentBack():
		case c.known != nil:
			a.complete(c.known, &c.outputItem, c.raw)
		case isStreamed && c.Type != typeCall && (c.Type != typeMessage || hasAllText):
		case a.sameCall(&c.outputItem) == nil:
			a.complete(a.add(c.index, &c.outputItem), &c.outputItem, c.raw)
		}
	}
}

// pair decodes the closing list and finds the items of the stream that it repeats.
func (a *answer) pair(output []json.RawMessage) []*closingItem {
	var list []*closingItem
	for i, raw := range output {
		c := &closingItem{index: i, raw: raw}
		if httpapi.Unmarshal(raw, &c.outputItem) == nil && c.Type != "" {
			list = append(list, c)
		}
	}
	taken := map[*item]bool{}
	for i, by := range identities {
		a.pairBy(by, list, taken)
		for _, c := range list {
			if i == 0 && c.known == nil { // the list has it twice
				c.known = a.sameCall(&c.outputItem)
			}
		}
	}
	return list
}

// pairBy pairs items that have an identity in common, each once.
func (a *answer) pairBy(by identity, list []*closingItem, taken map[*item]bool) {
	rest := map[[2]string][]*item{}
	for _, it := range a.items {
		if key := by.ofItem(it); key != "" && !taken[it] {
			rest[[2]string{it.kind, key}] = append(rest[[2]string{it.kind, key}], it)
		}
	}
	for _, c := range list {
		if c.known != nil || len(rest) == 0 {
			continue
		}
		key := [2]string{c.Type, by.ofClosing(c)}
		if i := slices.IndexFunc(rest[key], func(it *item) bool { return !it.isAnother(&c.outputItem) }); i >= 0 {
			c.known = rest[key][i]
			rest[key] = slices.Delete(rest[key], i, i+1)
			taken[c.known] = true
		}
	}
}

// hasText reports whether the stream had all text of the closing list. Some gateways stream
// several messages as one, or one as several.
func (a *answer) hasText(list []*closingItem) bool {
	var streamed, closing strings.Builder
	for _, it := range a.items {
		streamed.WriteString(it.text.String())
	}
	for _, c := range list {
		closing.WriteString(c.text())
	}
	return strings.Contains(httpapi.Whole(streamed.String()), closing.String())
}

// sameCall returns the call with the id, the name and the arguments of another, or nil.
func (a *answer) sameCall(h *outputItem) *item {
	for _, it := range a.items {
		if it.kind == typeCall && h.Type == typeCall && h.CallID != "" && it.callID == h.CallID && it.name == h.Name &&
			it.content() == h.content() {
			return it
		}
	}
	return nil
}
