package openai

import (
	"cmp"
	"encoding/json"
	"slices"

	openai "github.com/sashabaranov/go-openai"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// emptyText replaces an empty text, which many providers refuse.
const emptyText = "(no output)"

// A message is one message of a request. Its content is a text, a list of contentPart, or null.
type message struct {
	Role       string     `json:"role"`
	Content    any        `json:"content"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`

	// Fields of earlier answers that some providers require.
	ReasoningContent *string           `json:"reasoning_content,omitempty"`
	Reasoning        *string           `json:"reasoning,omitempty"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details,omitempty"`
	ExtraContent     json.RawMessage   `json:"extra_content,omitempty"`
}

type toolCall struct {
	openai.ToolCall
	ExtraContent json.RawMessage `json:"extra_content,omitempty"`
}

// messages returns the session as messages of a request.
func (c *client) messages(req *model.Request) []message {
	w := &writer{client: c, repairs: c.repairs.Now(), conversation: c.files.Conversation(req)}
	steps := w.conversation.Steps
	list := make([]message, 0, len(req.Steps)+1)
	if req.System != "" {
		list = append(list, message{Role: openai.ChatMessageRoleSystem, Content: req.System})
	}
	for i, s := range steps {
		switch s.Role {
		case step.RoleUser:
			list = w.user(list, textOf(s), w.filesOf(s))
		case step.RoleAssistant:
			list = append(list, w.assistant(s))
			list = w.results(list, s.Calls, steps[i+1:])
		case step.RoleTool: // follows its call
		}
	}
	if c.dialect.marked.of(c.Model) && !w.repairs.Dropped(fieldCacheControl) {
		mark(list)
	}
	return list
}

// A writer writes the messages of one request.
type writer struct {
	*client
	repairs httpapi.Repairs
	// thinkingField is the field in which the model sent its reasoning before; empty: it sent none that can be sent
	// back without its details.
	thinkingField string
	conversation  *httpapi.Conversation
}

// user adds a message of the user to a list. Strict chat templates take no message of the user
// right after a tool result or after another one.
func (w *writer) user(list []message, text string, files []contentPart) []message {
	if n := len(list); n > 0 {
		last := &list[n-1]
		switch last.Role {
		case openai.ChatMessageRoleUser:
			last.Content = joinContent(last.Content, text, files)
			return list
		case openai.ChatMessageRoleTool:
			list = append(list, w.assistant(step.Step{Parts: []step.Part{{Kind: step.PartText, Text: model.Interlude}}}))
		}
	}
	return append(list, message{Role: openai.ChatMessageRoleUser, Content: joinContent(nil, text, files)})
}

// textOf returns the text of a step, which is never empty.
func textOf(s step.Step) string { return cmp.Or(s.Text(), emptyText) }

type cacheControl struct {
	Type string `json:"type"`
}

// maxCachedTurns is how many turns end with cache_control: the last, for the next
// request, and the one before it, which the request before this one wrote.
const maxCachedTurns = 2

// mark sets cache_control on the system prompt, which includes the tools before it, and
// on the last turns.
func mark(list []message) {
	left := maxCachedTurns
	for i := len(list) - 1; i >= 0; i-- {
		m := &list[i]
		ends := m.Role != openai.ChatMessageRoleAssistant && (i == len(list)-1 || list[i+1].Role == openai.ChatMessageRoleAssistant)
		if m.Role != openai.ChatMessageRoleSystem && (!ends || left == 0) {
			continue
		}
		if m.Role != openai.ChatMessageRoleSystem {
			left--
		}
		m.Content = markLastText(m.Content)
	}
}

// assistant returns an answer of a model, with the reasoning that the provider requires if the same model wrote it.
func (w *writer) assistant(s step.Step) message {
	m := message{Role: openai.ChatMessageRoleAssistant, Content: textOf(s)}
	if len(s.Calls) > 0 && s.Text() == "" {
		m.Content = nil
	}
	for _, call := range s.Calls {
		m.ToolCalls = append(m.ToolCalls, toolCall{ToolCall: openai.ToolCall{
			ID:       model.WireID(call.ID),
			Type:     openai.ToolTypeFunction,
			Function: openai.FunctionCall{Name: model.WireName(call.Name), Arguments: w.arguments(call.Args)},
		}})
	}
	w.addReasoning(&m, readReasoning(s.ForModel(w.Name)))
	return m
}

// arguments returns the arguments of a call as text: the recorded object, or the replacement of an invalid one.
func (c *client) arguments(args json.RawMessage) string {
	var broken string
	if json.Unmarshal(args, &broken) != nil {
		return cmp.Or(string(args), "{}")
	}
	if c.dialect.invalidArgs == argsVerbatim {
		return cmp.Or(broken, "{}")
	}
	return "{}"
}

// results adds the tool messages for calls, in the order of the calls, from the steps after
// them. Their images and documents follow as a message of the user: a tool message is text.
func (w *writer) results(list []message, calls []step.Call, after []step.Step) []message {
	end := slices.IndexFunc(after, func(s step.Step) bool { return s.Role != step.RoleTool })
	if end >= 0 {
		after = after[:end]
	}
	var files []contentPart
	for _, call := range calls {
		for _, s := range after {
			if s.CallID == call.ID {
				list = append(list, message{Role: openai.ChatMessageRoleTool, ToolCallID: model.WireID(s.CallID), Content: textOf(s)})
				files = append(files, w.filesOf(s)...)
			}
		}
	}
	if files == nil {
		return list
	}
	return w.user(list, filesOfResults, files)
}
