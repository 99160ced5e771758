package responses

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// emptyText replaces an empty text, which some servers refuse.
const emptyText = "(no output)"

// maxCallID bounds the ids of calls that are sent back, in bytes.
const maxCallID = 256

// An inputItem is an item of the input that this package writes: a message, a call or its result. A reasoning item is
// sent as recorded.
type inputItem struct {
	Type    string `json:"type"`
	Role    string `json:"role,omitempty"`
	Phase   string `json:"phase,omitempty"`
	Content any    `json:"content,omitempty"` // a text of the user or a list of inputPart, or a list of one outputText

	CallID    string  `json:"call_id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Arguments *string `json:"arguments,omitempty"`
	Output    any     `json:"output,omitempty"` // a text, or a list of inputPart
}

type outputText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// partData is the Part.Provider of a text or a call.
type partData struct {
	Type   string `json:"type"` // of the item
	Phase  string `json:"phase,omitempty"`
	CallID string `json:"call_id,omitempty"`
}

func (d partData) encode() json.RawMessage {
	data, _ := json.Marshal(d) // strings: cannot fail
	return data
}

// dataOf returns the data of a part; parts of another API have none.
func dataOf(p step.Part) (d partData) {
	if p.Provider != nil {
		_ = httpapi.Unmarshal(p.Provider, &d)
	}
	return d
}

// A writer writes the input of one request.
type writer struct {
	name     string
	verbatim bool
	repairs  httpapi.Repairs
	// refusedThrough is the last step whose reasoning the provider refused.
	refusedThrough int64

	list []any
	// callIDs has the ids of calls in this request, usedIDs the used ids.
	callIDs map[string]string
	usedIDs map[string]bool

	conversation *httpapi.Conversation

	hasReasoning, hasPhase bool
}

func (c *client) newWriter(repairs httpapi.Repairs, refusedThrough int64) *writer {
	return &writer{
		name: c.Name, verbatim: c.Verbatim, repairs: repairs, refusedThrough: refusedThrough,
		callIDs: map[string]string{}, usedIDs: map[string]bool{},
	}
}

// fields returns the fields of items that not every provider knows.
func (w *writer) fields() []string {
	var fields []string
	if w.hasReasoning {
		fields = append(fields, fieldEncrypted)
	}
	if w.hasPhase {
		fields = append(fields, fieldPhase)
	}
	return fields
}

// input returns the session as items.
func (w *writer) input(steps []step.Step) []any {
	w.list = make([]any, 0, len(steps))
	for i, s := range steps {
		switch s.Role {
		case step.RoleUser:
			w.list = append(w.list, inputItem{Type: "message", Role: "user", Content: w.content(s)})
		case step.RoleAssistant:
			w.addAnswer(s.ForModel(w.name))
			w.addResults(s.Calls, steps[i+1:])
		case step.RoleTool: // follows its call
		}
	}
	return w.list
}

// addAnswer adds the items of an earlier answer in their order. Reasoning belongs to the item that followed it: without
// one, or if that item is not sent, it is left out.
func (w *writer) addAnswer(s step.Step) {
	var reasoning []any
	before := len(w.list)
	add := func(item inputItem) {
		w.hasReasoning = w.hasReasoning || len(reasoning) > 0
		w.list = append(append(w.list, reasoning...), item)
		reasoning = nil
	}
	for p, call := range s.Content() {
		switch {
		case call != nil:
			add(w.call(call, dataOf(p)))
		case p.Kind == step.PartThinking:
			if item := w.reasoning(s.Seq, p); item != nil {
				reasoning = append(reasoning, item)
			}
		case p.Kind == step.PartText && p.Text != "":
			add(w.message(p.Text, dataOf(p)))
		default:
			reasoning = nil
		}
	}
	if len(w.list) == before {
		w.list = append(w.list, w.message(emptyText, partData{}))
	}
}

// message returns a text of an earlier answer.
func (w *writer) message(text string, data partData) inputItem {
	item := inputItem{Type: typeMessage, Role: "assistant", Content: []outputText{{Type: "output_text", Text: text}}}
	if !w.repairs.Dropped(fieldPhase) {
		item.Phase = data.Phase
		w.hasPhase = w.hasPhase || data.Phase != ""
	}
	return item
}

// reasoning returns a reasoning item to send back, or nil.
func (w *writer) reasoning(seq int64, p step.Part) any {
	isRefused := seq <= w.refusedThrough && w.refusedThrough > 0
	if isRefused || w.repairs.Dropped(fieldEncrypted) || dataOf(p).Type != typeReasoning {
		return nil
	}
	return p.Provider
}

// call returns a call of an earlier answer with the id that the provider gave it. Servers that
// repeat their ids get ours for the later calls.
func (w *writer) call(c *step.Call, data partData) inputItem {
	id := data.CallID
	if id == "" || len(id) > maxCallID || w.usedIDs[id] {
		id = model.WireID(c.ID)
	}
	w.usedIDs[id] = true
	w.callIDs[c.ID] = id
	args := w.arguments(c.Args)
	return inputItem{Type: typeCall, CallID: id, Name: model.WireName(c.Name), Arguments: &args}
}

// arguments returns the arguments of a call as text: the recorded object, or the replacement of an invalid one.
func (w *writer) arguments(args json.RawMessage) string {
	var invalid string
	if json.Unmarshal(args, &invalid) != nil {
		return cmp.Or(string(args), "{}")
	}
	if w.verbatim {
		return cmp.Or(invalid, "{}")
	}
	return "{}"
}

// addResults adds a result for each call, in the order of the calls, from the steps after them.
func (w *writer) addResults(calls []step.Call, after []step.Step) {
	end := slices.IndexFunc(after, func(s step.Step) bool { return s.Role != step.RoleTool })
	if end >= 0 {
		after = after[:end]
	}
	for _, call := range calls {
		var output any = emptyText
		for i := range after {
			if after[i].CallID == call.ID {
				output = w.content(after[i])
				break
			}
		}
		w.list = append(w.list, inputItem{Type: "function_call_output", CallID: w.callIDs[call.ID], Output: output})
	}
}
