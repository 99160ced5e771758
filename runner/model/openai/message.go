package openai

import (
	"cmp"
	"encoding/json"
	"slices"

	openai "github.com/sashabaranov/go-openai"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// nothing is sent in place of an empty text, which many providers refuse.
const nothing = "(no output)"

// A message is one message as the provider wants it. Its content is a text, or a
// list of one marked text, or null.
type message struct {
	Role       string     `json:"role"`
	Content    any        `json:"content"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`

	// What some providers demand back from their own answers.
	ReasoningContent *string           `json:"reasoning_content,omitempty"`
	Reasoning        *string           `json:"reasoning,omitempty"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details,omitempty"`
	ExtraContent     json.RawMessage   `json:"extra_content,omitempty"`
}

type toolCall struct {
	openai.ToolCall
	ExtraContent json.RawMessage `json:"extra_content,omitempty"`
}

// messages is the session as the provider wants it.
func (c *client) messages(req *model.Request) []message {
	list := make([]message, 0, len(req.Steps)+1)
	if req.System != "" {
		list = append(list, message{Role: openai.ChatMessageRoleSystem, Content: req.System})
	}
	for i, s := range req.Steps {
		switch s.Role {
		case step.RoleUser:
			list = append(list, message{Role: openai.ChatMessageRoleUser, Content: words(s)})
		case step.RoleAssistant:
			list = append(list, c.assistant(s))
			list = append(list, results(s.Calls, req.Steps[i+1:])...)
		case step.RoleTool: // follows its call
		}
	}
	if c.dialect.marked.of(c.Model) {
		mark(list)
	}
	return list
}

// words are the text of a step, and never empty.
func words(s step.Step) string { return cmp.Or(s.Text(), nothing) }

// A markedText is a text up to which the provider caches the prompt.
type markedText struct {
	Type         string       `json:"type"`
	Text         string       `json:"text"`
	CacheControl cacheControl `json:"cache_control"`
}

type cacheControl struct {
	Type string `json:"type"`
}

// turnMarks is how many ends of turns are marked: the last, to be read by the
// next request, and the one before it, which the request before this one wrote.
const turnMarks = 2

// mark marks the system prompt, with the tools before it, and the last ends of
// turns.
func mark(list []message) {
	left := turnMarks
	for i := len(list) - 1; i >= 0; i-- {
		m := &list[i]
		ends := m.Role != openai.ChatMessageRoleAssistant && (i == len(list)-1 || list[i+1].Role == openai.ChatMessageRoleAssistant)
		if m.Role != openai.ChatMessageRoleSystem && (!ends || left == 0) {
			continue
		}
		if m.Role != openai.ChatMessageRoleSystem {
			left--
		}
		text, _ := m.Content.(string) // only an assistant's may be nil
		m.Content = []markedText{{Type: "text", Text: text, CacheControl: cacheControl{Type: "ephemeral"}}}
	}
}

// assistant is an answer of a model, with the thinking that the provider wants
// back, if the same model wrote it.
func (c *client) assistant(s step.Step) message {
	m := message{Role: openai.ChatMessageRoleAssistant, Content: words(s)}
	if len(s.Calls) > 0 && s.Text() == "" {
		m.Content = nil
	}
	for _, call := range s.Calls {
		m.ToolCalls = append(m.ToolCalls, toolCall{ToolCall: openai.ToolCall{
			ID:       model.WireID(call.ID),
			Type:     openai.ToolTypeFunction,
			Function: openai.FunctionCall{Name: model.WireName(call.Name), Arguments: c.arguments(call.Args)},
		}})
	}
	if c.dialect.echo == echoDemanded || c.dialect.echo == echoReceived && len(s.Calls) > 0 {
		own := c.Name == "" || s.Model == "" || s.Model == c.Name
		if !own {
			s.Parts = nil
		}
		recall(s.Parts).onto(&m, c.dialect)
	}
	return m
}

// arguments are the text of a call's arguments: the object as it is recorded,
// or what stands for something that is none.
func (c *client) arguments(args json.RawMessage) string {
	var broken string
	if json.Unmarshal(args, &broken) != nil {
		return cmp.Or(string(args), "{}")
	}
	if c.dialect.brokenArgs == argsVerbatim {
		return cmp.Or(broken, "{}")
	}
	return "{}"
}

// results are the tool messages that answer calls, in the order of the calls,
// from the steps that follow them.
func results(calls []step.Call, after []step.Step) []message {
	end := slices.IndexFunc(after, func(s step.Step) bool { return s.Role != step.RoleTool })
	if end >= 0 {
		after = after[:end]
	}
	var list []message
	for _, call := range calls {
		for _, s := range after {
			if s.CallID == call.ID {
				list = append(list, message{Role: openai.ChatMessageRoleTool, ToolCallID: model.WireID(s.CallID), Content: words(s)})
			}
		}
	}
	return list
}
