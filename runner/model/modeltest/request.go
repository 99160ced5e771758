package modeltest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

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

// A wire is one API of models.
type wire struct {
	// read fills a Request from its raw body. check refuses what strict providers refuse.
	read  func(*Request) error
	check func(Request) error
	// keys returns the API keys in the headers of a request.
	keys   func(http.Header) []string
	render func(Request, Turn) playback
	// failure is the body of an error.
	failure func(status int, message string) map[string]any
	// marksCache reports whether requests mark how far a prompt is cached.
	marksCache bool
	// framed reports whether an answer is a stream of frames and not of lines.
	framed bool
}

// chat is the wire of OpenAI's chat completions.
var chat = &wire{
	read:   func(r *Request) error { return json.Unmarshal(r.Raw, r) },
	check:  Request.check,
	keys:   func(h http.Header) []string { return []string{h.Get("Authorization"), h.Get("Api-Key")} },
	render: render,
	failure: func(status int, message string) map[string]any {
		return map[string]any{"error": map[string]any{"message": message, "type": "scripted", "code": status}}
	},
}

// shows reports whether a request carries the key.
func (w *wire) shows(h http.Header, key string) bool {
	for _, shown := range w.keys(h) {
		if shown == key || shown == "Bearer "+key {
			return true
		}
	}
	return false
}

// refuse answers an error.
func (w *wire) refuse(rw http.ResponseWriter, status int, message string) {
	rw.Header().Set("Content-Type", "application/json")
	if w.framed {
		rw.Header().Set("X-Amzn-ErrorType", exceptionOf(status)+":http://internal.amazon.com/coral/com.amazon.bedrock/")
	}
	rw.WriteHeader(status)
	_ = json.NewEncoder(rw).Encode(w.failure(status, message)) // the client went away
}

// A File is an image or a document in a request.
type File struct {
	MediaType string
	Data      []byte
}

// UnmarshalJSON reads a message whose content is a text, a list of texts, images and documents,
// or null.
func (m *Message) UnmarshalJSON(data []byte) error {
	type plain Message
	var raw struct {
		plain
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*m = Message(raw.plain)
	if len(raw.Content) == 0 || raw.Content[0] != '[' {
		return json.Unmarshal(orNull(raw.Content), &m.Content)
	}
	var parts []chatPart
	if err := json.Unmarshal(raw.Content, &parts); err != nil {
		return err
	}
	text := ""
	for _, p := range parts {
		switch {
		case p.Type == "text" && p.Text != "":
			text += p.Text
		case p.Type == "image_url":
			if err := m.addURL(p.ImageURL.URL, imageTypes); err != nil {
				return err
			}
		case p.Type == "file" && p.File.Name != "":
			if err := m.addURL(p.File.Data, documentTypes); err != nil {
				return err
			}
		default:
			return fmt.Errorf("a part of type %q with %d bytes of text", p.Type, len(p.Text))
		}
	}
	m.Content = &text
	return nil
}

// A chatPart is a part of a content of chat completions.
type chatPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL struct {
		URL string `json:"url"`
	} `json:"image_url"`
	File struct {
		Name string `json:"filename"`
		Data string `json:"file_data"`
	} `json:"file"`
}

// The media types that providers take.
var (
	imageTypes    = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
	documentTypes = []string{"application/pdf"}
)

// addURL adds a file that is a data URL.
func (m *Message) addURL(url string, types []string) error {
	mediaType, data, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	if !ok || !strings.HasPrefix(url, "data:") {
		return fmt.Errorf("the URL %.40q is not a data URL", url)
	}
	return m.addFile(mediaType, data, types)
}

// addFile adds a file in base64.
func (m *Message) addFile(mediaType, data string, types []string) error {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(raw) == 0 || !slices.Contains(types, mediaType) {
		return fmt.Errorf("a file of type %q with %d bytes is not one of %v (%w)", mediaType, len(raw), types, err)
	}
	if found := http.DetectContentType(bytes.TrimSpace(raw)); found != mediaType {
		return fmt.Errorf("the file was specified using the media type %s, but appears to be %s", mediaType, found)
	}
	m.Files = append(m.Files, File{MediaType: mediaType, Data: raw})
	return nil
}

func orNull(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return []byte("null")
	}
	return raw
}
