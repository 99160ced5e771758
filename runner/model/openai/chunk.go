package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
)

// A small chunk may have very many elements. A chunk beyond these bounds is an error.
const (
	maxChoices = 2 // one is requested
	maxItems   = 4 * maxCalls
)

var errTooMany = errors.New("it holds more than any answer does")

// A chunk is a part of an answer, or a whole answer without streaming. The client library's type drops fields that
// providers add, and fails on unexpected types. Here every field is optional, and a value of a wrong type counts as
// absent.
type chunk struct {
	Choices [maxChoices]choice `json:"choices"`
	Usage   *usage             `json:"usage"`
	Error   json.RawMessage    `json:"error"`
}

type choice struct {
	Index        int                `json:"index"`
	Delta        delta              `json:"delta"`
	Message      delta              `json:"message"` // not streamed
	FinishReason httpapi.ReasonText `json:"finish_reason"`
	NativeReason httpapi.ReasonText `json:"native_finish_reason"` // OpenRouter
	Usage        *usage             `json:"usage"`                // Moonshot
	Error        json.RawMessage    `json:"error"`                // OpenRouter
}

type delta struct {
	Content          content               `json:"content"`
	Refusal          httpapi.Fragment      `json:"refusal"`
	Reasoning        httpapi.Fragment      `json:"reasoning"`
	ReasoningContent httpapi.Fragment      `json:"reasoning_content"`
	ReasoningDetails list[json.RawMessage] `json:"reasoning_details"`
	ToolCalls        list[callDelta]       `json:"tool_calls"`
	FunctionCall     functionDelta         `json:"function_call"` // the API before tools
	ExtraContent     optional              `json:"extra_content"`
}

type callDelta struct {
	Index        number        `json:"index"` // empty: none
	ID           string        `json:"id"`
	Function     functionDelta `json:"function"`
	ExtraContent optional      `json:"extra_content"`
}

type functionDelta struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// A number is a JSON number as text; any other value is empty.
type number string

// UnmarshalJSON accepts any value.
func (n *number) UnmarshalJSON(data []byte) error {
	if '0' <= data[0] && data[0] <= '9' {
		*n = number(data)
	}
	return nil
}

// optional is any JSON value but null.
type optional json.RawMessage

// UnmarshalJSON accepts any value.
func (o *optional) UnmarshalJSON(data []byte) error {
	if string(data) != "null" {
		*o = bytes.Clone(data)
	}
	return nil
}

// A list is a JSON array of at most maxItems.
type list[T any] []T

// UnmarshalJSON accepts any value; anything but an array is empty.
func (l *list[T]) UnmarshalJSON(data []byte) error {
	if data[0] != '[' {
		return nil
	}
	decoder := jsonv1.NewDecoder(bytes.NewReader(data))
	_, _ = decoder.Token() // the bracket
	for decoder.More() {
		if len(*l) == maxItems {
			return errTooMany
		}
		var item T
		if err := httpapi.IgnoreTypeErrors(decoder.Decode(&item)); err != nil {
			return err
		}
		*l = append(*l, item)
	}
	return nil
}

// content is a text, or a list of parts as Mistral writes it.
type content struct {
	text     string
	thinking string
}

// UnmarshalJSON accepts any value.
func (c *content) UnmarshalJSON(data []byte) error {
	*c = content{text: httpapi.ParseFragment(data)}
	if data[0] != '[' {
		return nil
	}
	var parts list[struct {
		Text     httpapi.Fragment `json:"text"`
		Thinking texts            `json:"thinking"`
	}]
	err := json.Unmarshal(data, &parts)
	for _, part := range parts {
		c.text += string(part.Text)
		c.thinking += string(part.Thinking)
	}
	return err
}

// texts is a text, or the texts of a list.
type texts string

// UnmarshalJSON accepts any value.
func (t *texts) UnmarshalJSON(data []byte) error {
	*t = texts(httpapi.ParseFragment(data))
	if data[0] != '[' {
		return nil
	}
	var parts list[struct {
		Text httpapi.Fragment `json:"text"`
	}]
	err := json.Unmarshal(data, &parts)
	var all strings.Builder
	for _, part := range parts {
		all.WriteString(string(part.Text))
	}
	*t = texts(all.String())
	return err
}
