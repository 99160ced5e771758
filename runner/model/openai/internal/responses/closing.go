package responses

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
)

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
