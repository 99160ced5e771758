package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
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
	Refusal          text              `json:"refusal"`
	Reasoning        text              `json:"reasoning"`
	ReasoningContent text              `json:"reasoning_content"`
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

// content is a text, or a list of parts as Mistral writes it.
type content struct {
	text     string
	thinking string
}

// UnmarshalJSON accepts any value.
func (c *content) UnmarshalJSON(data []byte) error {
	if data[0] != '[' {
		c.text = str(data)
		return nil
	}
	var parts []struct {
		Text     text    `json:"text"`
		Thinking content `json:"thinking"`
	}
	_ = json.Unmarshal(data, &parts) // what is no part says nothing
	for _, p := range parts {
		c.text += string(p.Text)
		c.thinking += p.Thinking.text
	}
	return nil
}

// decode reads a chunk into c, whose memory it uses again. A value of an
// unexpected type leaves its field empty; only what is no JSON at all is an
// error.
func (c *chunk) decode(raw []byte) error {
	choices := c.Choices[:cap(c.Choices)]
	clear(choices) // json keeps what an element held before
	*c = chunk{Choices: choices[:0]}
	err := json.Unmarshal(raw, c)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
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
