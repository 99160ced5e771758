package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/model"
)

// A Request is one request that a Server received.
type Request struct {
	Header http.Header
	// Raw is the body; the other fields are parsed from it.
	Raw      json.RawMessage
	Model    string    `json:"model"`
	Messages []Message `json:"messages"`
	Tools    []Tool    `json:"tools"`
	Stream   bool      `json:"stream"`

	path   string        // as it is escaped
	strict strictRequest // on the wires of Messages and of Bedrock
	items  itemsRequest  // on the wire of Responses
}

// A Message is one message of a request. Content is nil where it was null or
// absent.
type Message struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content"`
	ToolCalls  []ToolCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
	// Files are the images and documents of the message, in their order.
	Files []File `json:"-"`
}

// A ToolCall is a call that a request quotes.
type ToolCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// A Tool is a tool that a request offers.
type Tool struct {
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// turn returns the number of earlier answers of the model.
func (r Request) turn() int {
	n := 0
	for _, m := range r.Messages {
		if m.Role == "assistant" && (m.Content == nil || *m.Content != model.Interlude) {
			n++
		}
	}
	return n
}

// last returns the text of the last message of a role.
func (r Request) last(role string) string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == role && m.Content != nil {
			return *m.Content
		}
	}
	return ""
}

// tokens estimates the number of input tokens.
func (r Request) tokens() int64 { return model.EstimateTokens(len(r.Raw)) }

// files returns the images and documents of all messages.
func (r Request) files() (files []File) {
	for _, m := range r.Messages {
		files = append(files, m.Files...)
	}
	return files
}

// check refuses what strict providers refuse.
func (r Request) check() error {
	if len(r.Messages) == 0 {
		return errors.New("messages is empty")
	}
	var open []string // ids of calls without a result
	before := ""
	for i, m := range r.Messages {
		err := m.check()
		if err == nil {
			open, err = m.settle(open)
		}
		if err == nil {
			err = m.checkRole(before)
		}
		if err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
		before = m.Role
	}
	if len(open) > 0 {
		return fmt.Errorf("tool_calls without a result at the end: %v", open)
	}
	return nil
}

// settle returns the calls that are open after the message. The next message after calls must be the result of the
// first of them.
func (m *Message) settle(open []string) ([]string, error) {
	if m.Role == "tool" {
		if len(open) == 0 || open[0] != m.ToolCallID {
			return nil, fmt.Errorf("the result of %q is not the next of %v", m.ToolCallID, open)
		}
		return open[1:], nil
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("tool_calls without a result before it: %v", open)
	}
	for _, c := range m.ToolCalls {
		open = append(open, c.ID)
	}
	return open, nil
}

// checkRole refuses messages that strict chat templates refuse after the previous role: a user's message after a tool
// result or a user's message, and a system prompt that is not first.
func (m *Message) checkRole(before string) error {
	switch {
	case m.Role == "user" && (before == "user" || before == "tool"), m.Role == "system" && before != "":
		return fmt.Errorf("unexpected role %q after role %q", m.Role, before)
	}
	return nil
}

func (m *Message) check() error {
	said := m.Content != nil && *m.Content != ""
	if m.Files != nil && m.Role != "user" {
		return fmt.Errorf("a %s message with a file: only messages of the user have files", m.Role)
	}
	switch m.Role {
	case "system", "developer", "user", "tool":
		if !said {
			return fmt.Errorf("a %s message without content", m.Role)
		}
	case "assistant":
		if !said && len(m.ToolCalls) == 0 {
			return errors.New("an assistant message with neither content nor tool_calls")
		}
	default:
		return fmt.Errorf("unknown role %q", m.Role)
	}
	for _, c := range m.ToolCalls {
		if c.ID == "" || c.Function.Name == "" || !json.Valid([]byte(c.Function.Arguments)) {
			return fmt.Errorf("tool call %+v lacks an id, a name or JSON arguments", c)
		}
	}
	return nil
}
