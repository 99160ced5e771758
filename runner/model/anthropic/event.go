package anthropic

import (
	"encoding/json"
	"errors"

	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
)

// The types of events, of blocks and of deltas that mean something here. All
// others are ignored, or kept as they are.
const (
	typeMessage      = "message"
	typeStart        = "message_start"
	typeMessageDelta = "message_delta"
	typeStop         = "message_stop"
	typeBlockStart   = "content_block_start"
	typeDelta        = "content_block_delta"
	typeBlockStop    = "content_block_stop"
	typeError        = "error"

	typeText     = "text"
	typeThinking = "thinking"
	typeRedacted = "redacted_thinking"
	typeToolUse  = "tool_use"

	typeTextDelta      = "text_delta"
	typeThinkingDelta  = "thinking_delta"
	typeInputDelta     = "input_json_delta"
	typeSignatureDelta = "signature_delta"
	typeCitationsDelta = "citations_delta"
)

// An event is one event of a stream, or the whole of an answer that was not
// streamed. It is our own type because the client's is slow to decode and fails
// where a server writes another type. Every field is optional, and one of a
// wrong type counts as absent.
type event struct {
	Type    text            `json:"type"`
	Index   int             `json:"index"`
	Block   json.RawMessage `json:"content_block"`
	Delta   json.RawMessage `json:"delta"`
	Message *message        `json:"message"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
	message
}

// A message is an answer as a whole.
type message struct {
	ID         text              `json:"id"`
	Content    []json.RawMessage `json:"content"`
	StopReason text              `json:"stop_reason"`
	Usage      *usage            `json:"usage"`
}

// An ending is what a message_delta says.
type ending struct {
	StopReason text `json:"stop_reason"`
}

// A delta is a piece of a block.
type delta struct {
	Type      text            `json:"type"`
	Text      fragment        `json:"text"`
	Thinking  fragment        `json:"thinking"`
	Input     fragment        `json:"partial_json"`
	Signature text            `json:"signature"`
	Citation  json.RawMessage `json:"citation"`
}

// A text is a string; anything else is an empty one.
type text string

// UnmarshalJSON accepts any value.
func (t *text) UnmarshalJSON(data []byte) error {
	*t = text(httpapi.String(data))
	return nil
}

// A fragment is a piece of a text; anything but a string is an empty one.
type fragment string

// UnmarshalJSON accepts any value.
func (f *fragment) UnmarshalJSON(data []byte) error {
	*f = fragment(httpapi.Fragment(data))
	return nil
}

// decode reads JSON into v. A value of an unexpected type leaves its field
// empty; only what is no JSON at all is an error.
func decode(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}
