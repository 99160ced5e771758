package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// nothing is sent in place of an empty text, which is refused.
const nothing = "(no output)"

// onward is sent after an answer without a reply: a session ends with a message of the
// user.
const onward = "Continue."

// A messageParam is a message of the request: all that one side says until the other
// does.
type messageParam struct {
	Role    string `json:"role"`
	Content []any  `json:"content"` // *block, or as it came
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
	Content   string `json:"content,omitempty"`
	IsError   bool   `json:"is_error,omitempty"`

	CacheControl *mark `json:"cache_control,omitempty"` // last, so that what is before it stays
}

// A mark says that a cache may keep all up to here.
type mark struct {
	Type string `json:"type"`
}

var ephemeral = &mark{Type: "ephemeral"}

// marked is how many of the user's last messages are marked: one that the request
// before this one marked too, and one for the request after it.
const marked = 2

// A toolParam is a tool as the API wants it.
type toolParam struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	Input        json.RawMessage `json:"input_schema"`
	CacheControl *mark           `json:"cache_control,omitempty"`
}

// A writer writes one request.
type writer struct {
	*client
	// forgotten is up to which step the provider refuses its own thinking.
	forgotten int64
	// demands is whether calls must carry thinking.
	demands bool
}

func (c *client) write(req *model.Request) *writer {
	return &writer{
		client:    c,
		forgotten: c.refused.upTo(req.CacheKey),
		demands:   c.dialect.echo == echoDemanded && req.Params.Reasoning != model.ReasoningOff,
	}
}

// keep is the mark of what may be cached, where the provider reads it.
func (w *writer) addOpaque() *mark {
	if w.dialect.marksCache {
		return ephemeral
	}
	return nil
}

func (w *writer) system(text string) []any {
	if isBlank(text) {
		return nil
	}
	return []any{&blockParam{Type: "text", Text: text, CacheControl: w.addOpaque()}}
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
	list[len(list)-1].CacheControl = w.addOpaque()
	return list
}

// messages returns the session as the API wants it, with the answer so far before the
// model paused.
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
			list = append(list, messageParam{Role: "user", Content: userContent(calls, group)})
			continue
		}
		if len(list) == 0 {
			list = append(list, messageParam{Role: "user", Content: []any{say(nothing)}})
		}
		calls = nil
		for _, s := range group {
			calls = append(calls, s.Calls...)
		}
		list = append(list, messageParam{Role: "assistant", Content: w.assistant(group)})
	}
	return w.finish(list, calls, previous)
}

// finish ends the session with the user's turn, or with what the model said
// before it paused, and marks what may be cached.
func (w *writer) finish(list []messageParam, calls []step.Call, previous []json.RawMessage) []messageParam {
	if n := len(list); n == 0 || list[n-1].Role == "assistant" {
		list = append(list, messageParam{Role: "user", Content: userContent(calls, nil)})
	}
	left := marked
	for _, t := range slices.Backward(list) {
		if t.Role == "user" && left > 0 {
			t.Content[len(t.Content)-1].(*blockParam).CacheControl = w.addOpaque() //nolint:forcetypeassert // a user's turn has only ours
			left--
		}
	}
	if len(previous) > 0 {
		list = append(list, messageParam{Role: "assistant", Content: verbatim(previous)})
	}
	return list
}

// userContent is the content of a message of the user: first a result for each call, in their order, then
// all else that was said.
func userContent(calls []step.Call, group []step.Step) []any {
	var list []any
	for _, call := range calls {
		result := &blockParam{Type: "tool_result", ToolUseID: model.WireID(call.ID), Content: nothing, IsError: true}
		for _, s := range group {
			if s.Role == step.RoleTool && s.CallID == call.ID {
				result.Content, result.IsError = words(s), s.IsError
				break
			}
		}
		list = append(list, result)
	}
	for _, s := range group {
		if s.Role == step.RoleUser {
			list = append(list, say(words(s)))
		}
	}
	if list == nil {
		list = append(list, say(onward))
	}
	return list
}

func say(text string) *blockParam { return &blockParam{Type: "text", Text: text} }

// words are what a step says, and never nothing.
func words(s step.Step) string {
	text := s.Text()
	if isBlank(text) {
		return nothing
	}
	return text
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }

func verbatim(blocks []json.RawMessage) []any {
	list := make([]any, 0, len(blocks))
	for _, b := range blocks {
		list = append(list, b)
	}
	return list
}

// arguments are a call's arguments: the object as it is recorded, or an object
// around something that is none.
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
