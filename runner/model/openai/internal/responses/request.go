package responses

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// The fields of a request that a repair may change. Fields of items are separate.
const (
	fieldMaxTokens = "max_output_tokens"
	fieldReasoning = "reasoning"
	fieldSummary   = "summary"           // of reasoning
	fieldEncrypted = "encrypted_content" // of a reasoning item
	fieldPhase     = "phase"             // of a message
)

// efforts are the names of the levels of reasoning.
var efforts = map[model.Reasoning]string{
	model.ReasoningOff:    "none",
	model.ReasoningLow:    "low",
	model.ReasoningMedium: "medium",
	model.ReasoningHigh:   "high",
}

// A reasoning is the field of that name. Without a summary no reasoning can be shown.
type reasoning struct {
	Effort  string `json:"effort"`
	Summary string `json:"summary,omitempty"`
}

// A tool is a function that the model may call. Strict would need schemas in which all
// properties are required.
type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

// body returns the body of the request, and keeps a description of it. Equal requests have
// equal bytes.
func (e *exchange) body() ([]byte, error) {
	p, repairs := e.req.Params, e.repairs.Now()
	w := e.newWriter(repairs, e.refused.UpTo(e.req.CacheKey))
	w.conversation = e.files.Conversation(e.req)
	body := map[string]any{
		"model":   e.Model,
		"stream":  true,
		"store":   false,
		"include": []string{"reasoning.encrypted_content"},
		"input":   w.input(w.conversation.Steps),
	}
	if e.req.System != "" {
		body["instructions"] = e.req.System
	}
	if len(e.req.Tools) > 0 {
		body["tools"] = tools(e.req.Tools)
	}
	if p.MaxOutputTokens > 0 {
		body[fieldMaxTokens] = p.MaxOutputTokens
	}
	if e.CacheKey && e.req.CacheKey != "" {
		body["prompt_cache_key"] = httpapi.CacheKey(e.req.CacheKey)
	}
	if err := addReasoning(body, p.Reasoning, repairs); err != nil {
		return nil, err
	}
	e.addSampling(body)
	if err := httpapi.Merge(body, string(p.Extra)); err != nil {
		return nil, fmt.Errorf("merging the model's extra parameters: %w", err)
	}
	_, limit := repairs.Apply(body, fieldMaxTokens)
	e.Sent = httpapi.NewSent(e.req, body, map[string]string{
		fieldMaxTokens: httpapi.SettingOutput, "temperature": httpapi.SettingTemperature, "top_p": httpapi.SettingTopP,
		fieldReasoning: httpapi.SettingReasoning,
	})
	e.Sent.OutputField, e.Sent.MaxOutput = fieldMaxTokens, limit
	e.Sent.MessageFields = append(w.fields(), fieldSummary)
	return httpapi.Encode(body)
}

// addReasoning sets how hard the model thinks. Models that do not think refuse the field.
func addReasoning(body map[string]any, level model.Reasoning, repairs httpapi.Repairs) error {
	if level == "" {
		return nil
	}
	effort, ok := efforts[level]
	if !ok {
		return fmt.Errorf("reasoning %q is not known", level)
	}
	r := reasoning{Effort: effort}
	if level != model.ReasoningOff && !repairs.Dropped(fieldSummary) {
		r.Summary = "auto"
	}
	raw, err := httpapi.Encode(r)
	body[fieldReasoning] = json.RawMessage(raw) // which extra parameters may be merged into
	return err
}

func (e *exchange) addSampling(body map[string]any) {
	p := e.req.Params
	if !e.IsSampled(p.Reasoning) {
		return
	}
	if p.Temperature != nil {
		body["temperature"] = *p.Temperature
	}
	if p.TopP != nil {
		body["top_p"] = *p.TopP
	}
}

func tools(list []step.Tool) []tool {
	tools := make([]tool, 0, len(list))
	for _, t := range list {
		input := t.Input
		if len(input) == 0 {
			input = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		tools = append(tools, tool{Type: "function", Name: t.Name, Description: t.Description, Parameters: input})
	}
	return tools
}

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

// An inputPart is a part of a message of the user or of a tool's output: a text, an image or a
// document. https://platform.openai.com/docs/api-reference/responses/create
type inputPart struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	Detail   string `json:"detail,omitempty"` // of an image; some servers require it
	ImageURL string `json:"image_url,omitempty"`
	FileName string `json:"filename,omitempty"`
	FileData string `json:"file_data,omitempty"`
}

// content returns the content of a step of the user or a tool: its text, never empty, or a list of the text, the images
// and the documents.
func (w *writer) content(s step.Step) any {
	text := cmp.Or(s.Text(), emptyText)
	if !s.HasFiles() {
		return text
	}
	parts := []inputPart{{Type: "input_text", Text: text}}
	for _, p := range s.Parts {
		switch {
		case p.File == nil:
		case p.Kind == step.PartDocument:
			parts = append(parts, inputPart{Type: "input_file", FileName: p.File.BaseName(), FileData: w.conversation.DataURL(p.File)})
		default:
			parts = append(parts, inputPart{Type: "input_image", Detail: "auto", ImageURL: w.conversation.DataURL(p.File)})
		}
	}
	return parts
}
