package openai

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// nothing is sent in place of an empty text, which many providers refuse.
const nothing = "(no output)"

// maxName is the longest name of a function that providers accept.
const maxName = 64

// A message is one turn as the wire wants it.
type message struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content"`
	ToolCalls  []wireCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`

	// What some providers demand back from their own answers.
	ReasoningContent *string           `json:"reasoning_content,omitempty"`
	Reasoning        *string           `json:"reasoning,omitempty"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details,omitempty"`
	ExtraContent     json.RawMessage   `json:"extra_content,omitempty"`
}

type wireCall struct {
	ID           string          `json:"id"`
	Type         string          `json:"type"`
	Function     wireFunction    `json:"function"`
	ExtraContent json.RawMessage `json:"extra_content,omitempty"`
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// messages is the session as the wire wants it.
func (c *client) messages(req *model.Request) []message {
	list := make([]message, 0, len(req.Steps)+1)
	if req.System != "" {
		list = append(list, message{Role: "system", Content: &req.System})
	}
	for i, s := range req.Steps {
		switch s.Role {
		case step.RoleUser:
			list = append(list, message{Role: "user", Content: words(s)})
		case step.RoleAssistant:
			list = append(list, c.assistant(s))
			list = append(list, results(s.Calls, req.Steps[i+1:])...)
		case step.RoleTool: // follows its call
		}
	}
	return list
}

// words are what a step says, and never nothing.
func words(s step.Step) *string {
	text := cmp.Or(s.Text(), nothing)
	return &text
}

// assistant is an answer of a model. Its calls carry the thinking that led to
// them, where the provider wants that back and the same model wrote it.
func (c *client) assistant(s step.Step) message {
	m := message{Role: "assistant", Content: words(s)}
	if len(s.Calls) == 0 {
		return m
	}
	if s.Text() == "" {
		m.Content = nil
	}
	for _, call := range s.Calls {
		m.ToolCalls = append(m.ToolCalls, wireCall{
			ID:       model.WireID(call.ID),
			Type:     "function",
			Function: wireFunction{Name: wireName(call.Name), Arguments: c.arguments(call.Args)},
		})
	}
	if c.dialect.echo != echoNothing {
		own := c.Name == "" || s.Model == "" || s.Model == c.Name
		if !own {
			s.Parts = nil
		}
		recall(s.Parts).onto(&m, c.dialect.echo)
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
				list = append(list, message{Role: "tool", ToolCallID: model.WireID(s.CallID), Content: words(s)})
			}
		}
	}
	return list
}

// wireName is a name that every provider accepts for a function. Models invent
// others, and one would make each later request of the session fail.
func wireName(name string) string {
	legal := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	return cmp.Or(legal[:min(len(legal), maxName)], "unnamed")
}
