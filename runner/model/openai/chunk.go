package openai

import (
	"encoding/json"
	"strings"

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
	Index        int          `json:"index"`
	Delta        saying       `json:"delta"`
	Message      saying       `json:"message"` // not streamed
	FinishReason httpapi.Text `json:"finish_reason"`
	Usage        *usage       `json:"usage"` // Moonshot
}

type saying struct {
	Content          content           `json:"content"`
	Refusal          httpapi.Fragment  `json:"refusal"`
	Reasoning        httpapi.Fragment  `json:"reasoning"`
	ReasoningContent httpapi.Fragment  `json:"reasoning_content"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details"`
	ToolCalls        []callPiece       `json:"tool_calls"`
	FunctionCall     *functionPiece    `json:"function_call"` // before there were tools
	ExtraContent     json.RawMessage   `json:"extra_content"`
}

type callPiece struct {
	Index        *int            `json:"index"`
	ID           httpapi.Text    `json:"id"`
	Function     functionPiece   `json:"function"`
	ExtraContent json.RawMessage `json:"extra_content"`
}

type functionPiece struct {
	Name      httpapi.Text    `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
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
				said.WriteString(httpapi.ParseFragment(value))
			case "thinking":
				thought.WriteString(plain(value))
			}
		}
	}
	c.text, c.thinking = httpapi.ParseFragment(data)+said.String(), thought.String()
	return nil
}

// plain is a text, or the texts of a list.
func plain(data []byte) string {
	var said strings.Builder
	for part := range elements(data) {
		for key, value := range members(part) {
			if string(key) == "text" {
				said.WriteString(httpapi.ParseFragment(value))
			}
		}
	}
	return httpapi.ParseFragment(data) + said.String()
}
