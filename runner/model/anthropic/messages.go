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
