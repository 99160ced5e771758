package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// emptyText replaces an empty text, which is refused.
const emptyText = "(no output)"

// continuePrompt is sent after an answer without a reply: a request ends with a message of
// the user.
const continuePrompt = "Continue."

// A messageParam is a message of the request: all consecutive steps of one role.
type messageParam struct {
	Role    string `json:"role"`
	Content []any  `json:"content"` // *blockParam, or json.RawMessage
}

// A blockParam is a content block of the request that this package writes.
type blockParam struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Citations json.RawMessage `json:"citations,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`

	ID     string          `json:"id,omitempty"`
	Name   string          `json:"name,omitempty"`
	Input  json.RawMessage `json:"input,omitempty"`
	Caller json.RawMessage `json:"caller,omitempty"`

	ToolUseID string `json:"tool_use_id,omitempty"`
	Content   any    `json:"content,omitempty"` // a text, or a list of *blockParam
	IsError   bool   `json:"is_error,omitempty"`

	Source *source `json:"source,omitempty"` // of an image or a document
	Title  string  `json:"title,omitempty"`  // of a document

	CacheControl *mark `json:"cache_control,omitempty"` // last, so that what is before it stays
}

// A mark is a cache_control: the provider caches the prompt up to it.
type mark struct {
	Type string `json:"type"`
}

var ephemeral = &mark{Type: "ephemeral"}

// cachedMessages is how many of the user's last messages have cache_control: the last message of the previous request,
// and the last message of this one, for the next request.
const cachedMessages = 2

// A toolParam is a tool of the request.
type toolParam struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	Input        json.RawMessage `json:"input_schema"`
	CacheControl *mark           `json:"cache_control,omitempty"`
}

// A writer writes one request.
type writer struct {
	*client
	// refusedThrough is the last step whose thinking the provider refused.
	refusedThrough int64
	// needsThinking reports whether calls must have thinking.
	needsThinking bool
	// marks reports whether the provider reads cache_control.
	marks        bool
	conversation *httpapi.Conversation
}

func (c *client) write(req *model.Request) *writer {
	repairs := c.repairs.Now()
	return &writer{
		client:         c,
		conversation:   c.files.Conversation(req),
		refusedThrough: c.refused.UpTo(req.CacheKey),
		needsThinking:  (c.dialect.echo == echoDemanded || repairs.ReasoningDemanded()) && req.Params.Reasoning != model.ReasoningOff,
		marks:          c.dialect.cachesPrompt && !repairs.Dropped(fieldCacheControl),
	}
}

// cacheMark returns the mark up to which a prompt is cached; nil if the provider does not support it.
func (w *writer) cacheMark() *mark {
	if w.marks {
		return ephemeral
	}
	return nil
}

func (w *writer) system(text string) []any {
	if isBlank(text) {
		return nil
	}
	return []any{&blockParam{Type: "text", Text: text, CacheControl: w.cacheMark()}}
}

func (w *writer) tools(tools []step.Tool) []toolParam {
	list := make([]toolParam, 0, len(tools))
	for _, t := range tools {
		input := t.Input
		if len(input) == 0 {
			input = json.RawMessage(`{"type":"object"}`)
		}
		list = append(list, toolParam{Name: t.Name, Description: t.Description, Input: input})
	}
	list[len(list)-1].CacheControl = w.cacheMark()
	return list
}

// messages returns the session as messages of the request, with the content of a paused
// answer.
func (w *writer) messages(steps []step.Step, previous []json.RawMessage) []messageParam {
	var list []messageParam
	var calls []step.Call // of the turn before
	for len(steps) > 0 {
		isAssistant := steps[0].Role == step.RoleAssistant
		end := slices.IndexFunc(steps, func(s step.Step) bool { return (s.Role == step.RoleAssistant) != isAssistant })
		group := steps
		if end >= 0 {
			group = steps[:end]
		}
		steps = steps[len(group):]
		if !isAssistant {
			list = append(list, messageParam{Role: "user", Content: w.userContent(calls, group)})
			continue
		}
		if len(list) == 0 {
			list = append(list, messageParam{Role: "user", Content: []any{textBlock(emptyText)}})
		}
		calls = nil
		for _, s := range group {
			calls = append(calls, s.Calls...)
		}
		list = append(list, messageParam{Role: "assistant", Content: w.assistant(group)})
	}
	return w.finish(list, calls, previous)
}

// finish ends the messages with one of the user, or with the content of a paused answer,
// and adds cache_control.
func (w *writer) finish(list []messageParam, calls []step.Call, previous []json.RawMessage) []messageParam {
	if n := len(list); n == 0 || list[n-1].Role == "assistant" {
		list = append(list, messageParam{Role: "user", Content: w.userContent(calls, nil)})
	}
	left := cachedMessages
	for _, t := range slices.Backward(list) {
		if t.Role == "user" && left > 0 {
			t.Content[len(t.Content)-1].(*blockParam).CacheControl = w.cacheMark() //nolint:forcetypeassert // a user's turn has only ours
			left--
		}
	}
	if len(previous) > 0 {
		list = append(list, messageParam{Role: "assistant", Content: asContent(previous)})
	}
	return list
}

// userContent returns the content of a message of the user: a result for each call, in
// their order, and then the texts.
func (w *writer) userContent(calls []step.Call, group []step.Step) []any {
	var list []any
	for _, call := range calls {
		list = append(list, w.resultOf(call, group))
	}
	for _, s := range group {
		if s.Role == step.RoleUser {
			list = append(append(list, w.filesOf(s)...), textBlock(textOf(s)))
		}
		if s.Role == step.RoleTool && s.IsError { // the content of such a result is text only
			list = append(list, w.filesOf(s)...)
		}
	}
	if list == nil {
		list = append(list, textBlock(continuePrompt))
	}
	return list
}

// resultOf returns the result of a call; if the steps have none, it is an error.
func (w *writer) resultOf(call step.Call, group []step.Step) *blockParam {
	result := &blockParam{Type: "tool_result", ToolUseID: model.WireID(call.ID), Content: emptyText, IsError: true}
	for _, s := range group {
		if s.Role == step.RoleTool && s.CallID == call.ID {
			result.Content, result.IsError = w.resultContent(s), s.IsError
			break
		}
	}
	return result
}

func textBlock(text string) *blockParam { return &blockParam{Type: "text", Text: text} }

// textOf returns the text of a step, which is never blank.
func textOf(s step.Step) string {
	text := s.Text()
	if isBlank(text) {
		return emptyText
	}
	return text
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

func asContent(blocks []json.RawMessage) []any {
	list := make([]any, 0, len(blocks))
	for _, b := range blocks {
		list = append(list, b)
	}
	return list
}

// arguments returns the arguments of a call: the recorded object, or an object around any other value.
func arguments(args json.RawMessage) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(args, &object) == nil && object != nil {
		return args
	}
	if text := string(args); text == "" || text == "null" || text == `""` {
		return json.RawMessage("{}")
	}
	if !json.Valid(args) {
		args, _ = json.Marshal(string(args)) // a string: cannot fail
	}
	return json.RawMessage(`{"_":` + string(args) + `}`)
}

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

// A source is where the bytes of an image or a document are: in the request.
// https://platform.claude.com/docs/en/build-with-claude/vision
type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

// filesOf returns the images and documents of a step.
func (w *writer) filesOf(s step.Step) (list []any) {
	for _, p := range s.Parts {
		if p.File == nil {
			continue
		}
		block := &blockParam{
			Type: "image", Source: &source{Type: "base64", MediaType: p.File.MediaType, Data: w.conversation.Base64(p.File)},
		}
		if p.Kind == step.PartDocument {
			block.Type, block.Title = "document", p.File.BaseName()
		}
		list = append(list, block)
	}
	return list
}

// resultContent returns the content of a tool result: its text, or a list of the text, the
// images and the documents.
func (w *writer) resultContent(s step.Step) any {
	files := w.filesOf(s)
	if files == nil || s.IsError {
		return textOf(s)
	}
	return append([]any{textBlock(textOf(s))}, files...)
}
