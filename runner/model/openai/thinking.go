package openai

import (
	"cmp"
	"encoding/json"
	"maps"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// The fields in which providers send and accept reasoning.
const (
	fieldReasoning        = "reasoning"
	fieldReasoningContent = "reasoning_content"
	fieldCacheControl     = "cache_control"
	// fieldInline means that the thinking was in the text. It is not sent back: the chat
	// templates of such models remove it from earlier messages.
	fieldInline = "content"
)

// providerState is the data that must be sent back to the endpoint with an answer, without the text of the reasoning.
// It is the Part.Provider of reasoning.
type providerState struct {
	// Field is the name under which the thinking came; empty: reasoning_content.
	Field string `json:"field,omitempty"`
	// Details are the reasoning_details of OpenRouter, joined from their pieces.
	Details []json.RawMessage `json:"reasoning_details,omitempty"`
	// Extra is extra_content of the message: a thought signature of Gemini.
	Extra json.RawMessage `json:"extra_content,omitempty"`
	// Calls is extra_content of each call by position, in journals of earlier versions.
	Calls map[int]json.RawMessage `json:"calls,omitempty"`
}

func (p *providerState) empty() bool {
	return p.Field == "" && len(p.Details) == 0 && p.Extra == nil
}

// callState is the data that must be sent back with one call. It is the Part.Provider of a call.
type callState struct {
	Extra json.RawMessage `json:"extra_content,omitempty"`
}

// encode returns the state as Part.Provider.
func (c callState) encode() json.RawMessage {
	data, _ := json.Marshal(c) // raw values that were decoded before: cannot fail
	return data
}

// encode returns the state as Part.Provider.
func (p *providerState) encode() json.RawMessage {
	data, _ := json.Marshal(p) // raw values that were decoded before: cannot fail
	return data
}

// sentReasoning is the reasoning of an earlier answer, to be sent back.
type sentReasoning struct {
	text string
	providerState
}

// readReasoning joins the reasoning in an answer, and the data of its calls.
func readReasoning(s step.Step) *sentReasoning {
	t := &sentReasoning{}
	var text strings.Builder
	calls := 0
	for p, call := range s.Content() {
		var k providerState
		switch isOurs := json.Unmarshal(p.Provider, &k) == nil; {
		case call != nil:
			if isOurs && k.Extra != nil {
				t.add(providerState{Calls: map[int]json.RawMessage{calls: k.Extra}})
			}
			calls++
		case p.Kind == step.PartThinking:
			text.WriteString(p.Text)
			if isOurs {
				t.add(k)
			}
		}
	}
	t.text = text.String()
	return t
}

func (s *sentReasoning) add(k providerState) {
	if k.Field != "" {
		s.Field = k.Field
	}
	s.Details = append(s.Details, k.Details...)
	if k.Extra != nil {
		s.Extra = k.Extra
	}
	if s.Calls == nil {
		s.Calls = map[int]json.RawMessage{}
	}
	maps.Copy(s.Calls, k.Calls)
}

// addReasoning writes the reasoning of an earlier answer into its message. Details replace the text, because they have
// it, with its signature.
//
// A provider that requires reasoning requires it with every call, even if the model did not reason:
// https://github.com/cline/cline/issues/10574. Then a blank one is sent, in the field in which the provider sent
// reasoning before.
func (w *writer) addReasoning(m *message, t *sentReasoning) {
	demanded := w.dialect.echo == echoDemanded || w.repairs.ReasoningDemanded()
	if !demanded && (w.dialect.echo == echoNothing || w.repairs.Dropped(fieldReasoningContent)) {
		return
	}
	if !demanded && len(m.ToolCalls) == 0 {
		w.seeReasoning(t)
		return
	}
	m.ReasoningDetails, m.ExtraContent = t.Details, t.Extra
	for i, extra := range t.Calls {
		if 0 <= i && i < len(m.ToolCalls) {
			m.ToolCalls[i].ExtraContent = extra
		}
	}
	w.seeReasoning(t)
	switch {
	case demanded:
		text := cmp.Or(t.text, w.emptyReasoning())
		m.ReasoningContent = &text
	case len(t.Details) > 0, t.Field == fieldInline:
	case t.text == "" && w.thinkingField == "":
	case w.thinkingField == fieldReasoning:
		text := cmp.Or(t.text, blankReasoning)
		m.Reasoning = &text
	default:
		text := cmp.Or(t.text, blankReasoning)
		m.ReasoningContent = &text
	}
}

// seeReasoning records in which field the model sends reasoning. If the reasoning has details, it is not known whether
// text alone is accepted.
func (w *writer) seeReasoning(t *sentReasoning) {
	switch {
	case t.text == "":
	case len(t.Details) > 0, t.Field == fieldInline:
		w.thinkingField = ""
	default:
		w.thinkingField = cmp.Or(t.Field, fieldReasoningContent)
	}
}

// blankReasoning is sent if reasoning is required and there was none. Some providers treat an empty text as a missing
// one.
const blankReasoning = " "

// emptyReasoning returns the text to send if reasoning is required and there was none.
func (w *writer) emptyReasoning() string {
	if w.dialect.echo == echoDemanded && !w.repairs.ReasoningDemanded() {
		return w.dialect.emptyReasoning
	}
	return blankReasoning
}

// details joins the pieces of streamed reasoning_details: consecutive ones with the same index and type are one detail.
type details struct {
	open []*detail
}

type detail struct {
	fields        map[string]json.RawMessage
	text, summary strings.Builder
}

// A growing is a field that comes in pieces.
type growing struct {
	name  string
	whole *strings.Builder
}

func (d *detail) growing() []growing {
	return []growing{{"text", &d.text}, {"summary", &d.summary}}
}

// add adds pieces and returns the thinking in them.
func (d *details) add(pieces []json.RawMessage) string {
	var output strings.Builder
	for _, raw := range pieces {
		if len(d.open) > maxDetails {
			break // which ends the answer
		}
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) == nil {
			d.find(fields).extend(fields, &output)
		}
	}
	return output.String()
}

// extend adds the fields of a piece, and appends its text to output.
func (d *detail) extend(fields map[string]json.RawMessage, output *strings.Builder) {
	for _, g := range d.growing() {
		piece := httpapi.ParseFragment(fields[g.name])
		g.whole.WriteString(piece)
		output.WriteString(piece)
		delete(fields, g.name)
	}
	for name, value := range fields {
		if string(value) != "null" {
			d.fields[name] = value
		}
	}
}

// find returns the detail that a piece belongs to: the last, or a new one.
func (d *details) find(piece map[string]json.RawMessage) *detail {
	if n := len(d.open); n > 0 && piece["data"] == nil {
		last := d.open[n-1]
		if string(last.fields["type"]) == string(piece["type"]) && string(last.fields["index"]) == string(piece["index"]) {
			return last
		}
	}
	one := &detail{fields: map[string]json.RawMessage{}}
	d.open = append(d.open, one)
	return one
}

// take returns the details and starts with none.
func (d *details) take() []json.RawMessage {
	var list []json.RawMessage
	for _, one := range d.open {
		for _, g := range one.growing() {
			if g.whole.Len() > 0 {
				one.fields[g.name], _ = json.Marshal(httpapi.Whole(g.whole.String())) // a string: cannot fail
			}
		}
		data, _ := json.Marshal(one.fields) // decoded before: cannot fail
		list = append(list, data)
	}
	d.open = nil
	return list
}

// The tags around thinking in a text.
const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// maxLead bounds the space before <think>, in bytes.
const maxLead = 64

// A thinkTagParser finds the thinking at the start of a text that arrives in pieces. A
// tag further back is part of the text.
type thinkTagParser struct {
	state thinkTagState
	held  string // a part of a tag, or what may become one
}

type thinkTagState int

const (
	thinkTagLead   thinkTagState = iota // only space so far
	thinkTagInside                      // between the tags
	thinkTagGap                         // space between the thinking and the text
	thinkTagText                        // text, to the end
)

// read splits a piece of content into thinking and text.
func (t *thinkTagParser) read(piece string) (thinking, text string) {
	if t.state == thinkTagText || piece == "" {
		return "", piece
	}
	piece = t.held + piece
	t.held = ""
	if t.state == thinkTagLead {
		lead := strings.TrimLeft(piece, " \t\r\n")
		rest, opens := strings.CutPrefix(lead, thinkOpen)
		near := len(piece)-len(lead) <= maxLead
		switch {
		case opens && near:
			t.state, piece = thinkTagInside, rest
		case strings.HasPrefix(thinkOpen, lead) && near:
			t.held = piece
			return "", ""
		default:
			t.state = thinkTagText
			return "", piece
		}
	}
	if t.state == thinkTagInside {
		thinking, piece = t.inside(piece)
	}
	return thinking, t.gap(piece)
}

// inside splits a piece at the closing tag.
func (t *thinkTagParser) inside(piece string) (thinking, rest string) {
	if thinking, rest, closes := strings.Cut(piece, thinkClose); closes {
		t.state = thinkTagGap
		return thinking, rest
	}
	for length := min(len(thinkClose)-1, len(piece)); length > 0; length-- {
		if start := len(piece) - length; strings.HasPrefix(thinkClose, piece[start:]) {
			t.held = piece[start:]
			return piece[:start], ""
		}
	}
	return piece, ""
}

// gap removes the white space between thinking and text.
func (t *thinkTagParser) gap(piece string) string {
	if t.state != thinkTagGap {
		return ""
	}
	piece = strings.TrimLeft(piece, " \t\r\n")
	if piece != "" {
		t.state = thinkTagText
	}
	return piece
}

// end returns the text that was held back.
func (t *thinkTagParser) end() (thinking, text string) {
	held := t.held
	t.held = ""
	if t.state == thinkTagInside {
		return held, ""
	}
	return "", held
}
