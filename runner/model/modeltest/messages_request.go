package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// A strictRequest is a request on the wire of Messages.
type strictRequest struct {
	unsigned bool

	MaxTokens   int64           `json:"max_tokens"`
	Temperature *float64        `json:"temperature"`
	System      []strictBlock   `json:"system"`
	Messages    []strictMessage `json:"messages"`
	Tools       []struct {
		Name         string          `json:"name"`
		Input        json.RawMessage `json:"input_schema"`
		CacheControl json.RawMessage `json:"cache_control"`
	} `json:"tools"`
	Thinking struct {
		Type   string `json:"type"`
		Budget int64  `json:"budget_tokens"`
	} `json:"thinking"`
}

type strictMessage struct {
	Role    string        `json:"role"`
	Content []strictBlock `json:"content"`
}

type strictBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Source    struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"`
	CacheControl json.RawMessage `json:"cache_control"`
}

// readMessages sets the fields of a Request as for chat completions, so that a script and a test are the same for both
// APIs.
func readMessages(r *Request) error {
	var head struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
	}
	if err := errors.Join(json.Unmarshal(r.Raw, &head), json.Unmarshal(r.Raw, &r.strict)); err != nil {
		return err
	}
	r.Model, r.Stream = head.Model, head.Stream
	for _, t := range r.strict.Tools {
		var tool Tool
		tool.Function.Name, tool.Function.Parameters = t.Name, t.Input
		r.Tools = append(r.Tools, tool)
	}
	if len(r.strict.System) > 0 {
		r.Messages = append(r.Messages, Message{Role: "system", Content: &r.strict.System[0].Text})
	}
	for _, m := range r.strict.Messages {
		list, err := m.plain()
		if err != nil {
			return err
		}
		r.Messages = append(r.Messages, list...)
	}
	return nil
}

// plain returns a message as messages of chat completions.
func (m strictMessage) plain() (list []Message, err error) {
	var text strings.Builder
	own := Message{Role: m.Role}
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			text.WriteString(b.Text)
		case "tool_result":
			result, err := b.result()
			if err != nil {
				return nil, err
			}
			list = append(list, result)
		case "image", "document":
			if err := b.addTo(&own); err != nil {
				return nil, err
			}
		case "tool_use":
			call := ToolCall{ID: b.ID}
			call.Function.Name, call.Function.Arguments = b.Name, string(b.Input)
			own.ToolCalls = append(own.ToolCalls, call)
		}
	}
	if text.Len() > 0 {
		said := text.String()
		own.Content = &said
	}
	if own.Content == nil && own.ToolCalls == nil && own.Files == nil && len(list) > 0 {
		return list, nil
	}
	return append(list, own), nil
}

// result returns a tool result, whose content is a text, or a list of texts and files.
func (b strictBlock) result() (Message, error) {
	m := Message{Role: "tool", ToolCallID: b.ToolUseID, Content: new(string)}
	if json.Unmarshal(b.Content, m.Content) == nil {
		return m, nil
	}
	var list []strictBlock
	if err := json.Unmarshal(b.Content, &list); err != nil {
		return m, err
	}
	for _, part := range list {
		switch {
		case part.Type == "text" && part.Text != "":
			*m.Content += part.Text
		case b.IsError:
			return m, fmt.Errorf("all content must be type \"text\" if \"is_error\" is true")
		default:
			if err := part.addTo(&m); err != nil {
				return m, err
			}
		}
	}
	return m, nil
}

// addTo adds an image or a document to a message.
func (b strictBlock) addTo(m *Message) error {
	types := map[string][]string{"image": imageTypes, "document": documentTypes}[b.Type]
	if types == nil || b.Source.Type != "base64" {
		return fmt.Errorf("a block of type %q with a source of type %q", b.Type, b.Source.Type)
	}
	return m.addFile(b.Source.MediaType, b.Source.Data, types)
}

// maxMarks is the maximum number of cache marks in a request.
const maxMarks = 4

var (
	legalName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	legalID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
)

// check refuses what strict providers refuse.
func (r strictRequest) check() error {
	switch {
	case r.MaxTokens < 1:
		return errors.New("max_tokens: field required")
	case r.Thinking.Type == "enabled" && (r.Thinking.Budget < 1024 || r.Thinking.Budget >= r.MaxTokens):
		return fmt.Errorf("thinking.budget_tokens: %d is not from 1024 to below max_tokens", r.Thinking.Budget)
	case r.Thinking.Type == "enabled" && r.Temperature != nil && *r.Temperature != 1:
		return errors.New("temperature may only be set to 1 when thinking is enabled")
	case r.marks() > maxMarks:
		return fmt.Errorf("a maximum of %d blocks with cache_control may be provided, found %d", maxMarks, r.marks())
	case len(r.Messages) == 0 || r.Messages[0].Role != "user":
		return errors.New("messages: the first message must use the user role")
	}
	for i, t := range r.Tools {
		if !legalName.MatchString(t.Name) || len(t.Input) == 0 || t.Input[0] != '{' {
			return fmt.Errorf("tools.%d: a name or an input_schema that is none", i)
		}
	}
	var open []string // ids of calls without a result
	for i, m := range r.Messages {
		err := m.check()
		if err == nil {
			err = m.checkThinking(r.unsigned)
		}
		if err == nil {
			open, err = m.settle(open)
		}
		if err == nil && i > 0 && m.Role == r.Messages[i-1].Role {
			err = errors.New("roles must alternate")
		}
		if err != nil {
			return fmt.Errorf("messages.%d: %w", i, err)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("tool_use without tool_result at the end: %v", open)
	}
	return nil
}

func (r strictRequest) marks() int {
	n := 0
	for _, t := range r.Tools {
		n += min(len(t.CacheControl), 1)
	}
	for _, b := range r.System {
		n += min(len(b.CacheControl), 1)
	}
	for _, m := range r.Messages {
		for _, b := range m.Content {
			n += min(len(b.CacheControl), 1)
		}
	}
	return n
}

// settle returns the calls that are open after the turn: a user's turn begins with the results of all open calls.
func (m strictMessage) settle(open []string) ([]string, error) {
	if m.Role == "assistant" {
		for _, b := range m.Content {
			if b.Type == "tool_use" {
				open = append(open, b.ID)
			}
		}
		return open, nil
	}
	for i, b := range m.Content {
		if b.Type != "tool_result" {
			continue
		}
		if i >= len(open) || open[i] != b.ToolUseID {
			return nil, fmt.Errorf("content.%d: the result of %q is not the next of %v", i, b.ToolUseID, open)
		}
	}
	if results := len(open); results > len(m.Content) || results > 0 && m.Content[results-1].Type != "tool_result" {
		return nil, fmt.Errorf("tool_use without tool_result right after it: %v", open)
	}
	return nil, nil
}

func (m strictMessage) check() error {
	if m.Role != "user" && m.Role != "assistant" {
		return fmt.Errorf("unexpected role %q", m.Role)
	}
	if len(m.Content) == 0 {
		return errors.New("content must not be empty")
	}
	for i, b := range m.Content {
		if err := b.check(m.Role); err != nil {
			return fmt.Errorf("content.%d: %w", i, err)
		}
	}
	return nil
}

// checkThinking refuses thinking that its provider did not sign or, if none is signed, calls without thinking.
func (m strictMessage) checkThinking(unsigned bool) error {
	thought := false
	for i, b := range m.Content {
		thought = thought || b.Type == "thinking"
		switch {
		case b.Type == "thinking" && !unsigned && b.Signature != Signature(b.Thinking):
			return fmt.Errorf("content.%d: invalid `signature` in `thinking` block", i)
		case b.Type == "tool_use" && unsigned && !thought:
			return fmt.Errorf("content.%d: thinking must be passed back with the calls that it led to", i)
		}
	}
	return nil
}

func (b strictBlock) check(role string) error {
	switch {
	case b.Type == "text" && strings.TrimSpace(b.Text) == "":
		return errors.New("text content blocks must contain non-whitespace text")
	case b.Type == "tool_result" && (role != "user" || string(b.Content) == `""`):
		return errors.New("a tool_result without content, or that is not the user's")
	case b.Type == "tool_use" && (role != "assistant" || !legalID.MatchString(b.ID) || !legalName.MatchString(b.Name)):
		return fmt.Errorf("tool_use %q %q: an id or a name that is none, or not the assistant's", b.ID, b.Name)
	case b.Type == "tool_use" && (len(b.Input) == 0 || b.Input[0] != '{'):
		return errors.New("tool_use.input: input should be an object")
	case b.Type == "":
		return errors.New("a block without a type")
	}
	return nil
}
