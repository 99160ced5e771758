package openai

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
)

// A chunk is one piece of an answer, or the whole of one that was not streamed.
// It is our own type because the client's drops what providers add, and fails
// where they write another type. Every field is optional, and one of a wrong
// type counts as absent.
type chunk struct {
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index        int    `json:"index"`
	Delta        saying `json:"delta"`
	Message      saying `json:"message"` // not streamed
	FinishReason text   `json:"finish_reason"`
	Usage        *usage `json:"usage"` // Moonshot
}

type saying struct {
	Content          content           `json:"content"`
	Refusal          fragment          `json:"refusal"`
	Reasoning        fragment          `json:"reasoning"`
	ReasoningContent fragment          `json:"reasoning_content"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details"`
	ToolCalls        []callPiece       `json:"tool_calls"`
	FunctionCall     *functionPiece    `json:"function_call"` // before there were tools
	ExtraContent     json.RawMessage   `json:"extra_content"`
}

type callPiece struct {
	Index        *int            `json:"index"`
	ID           text            `json:"id"`
	Function     functionPiece   `json:"function"`
	ExtraContent json.RawMessage `json:"extra_content"`
}

type functionPiece struct {
	Name      text            `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// A text is a string; anything else is an empty one.
type text string

// UnmarshalJSON accepts any value.
func (t *text) UnmarshalJSON(data []byte) error {
	*t = text(str(data))
	return nil
}

// A fragment is a piece of a text; anything but a string is an empty one.
type fragment string

// UnmarshalJSON accepts any value.
func (f *fragment) UnmarshalJSON(data []byte) error {
	*f = fragment(httpapi.Fragment(data))
	return nil
}

// content is a text, or a list of parts as Mistral writes it.
type content struct {
	text     string
	thinking string
}

// UnmarshalJSON accepts any value.
func (c *content) UnmarshalJSON(data []byte) error {
	var said, thought strings.Builder
	for part := range elements(data) {
		for key, value := range members(part) {
			switch string(key) {
			case "text":
				said.WriteString(httpapi.Fragment(value))
			case "thinking":
				thought.WriteString(plain(value))
			}
		}
	}
	c.text, c.thinking = httpapi.Fragment(data)+said.String(), thought.String()
	return nil
}

// plain is a text, or the texts of a list.
func plain(data []byte) string {
	var said strings.Builder
	for part := range elements(data) {
		for key, value := range members(part) {
			if string(key) == "text" {
				said.WriteString(httpapi.Fragment(value))
			}
		}
	}
	return httpapi.Fragment(data) + said.String()
}

// str is the string that data holds, or nothing.
func str(data []byte) string {
	if len(data) < 2 || data[0] != '"' {
		return ""
	}
	inner := data[1 : len(data)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	var s string
	_ = json.Unmarshal(data, &s) // a JSON string: cannot fail
	return s
}
