package anthropic

import (
	"encoding/json"

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
	Type    httpapi.Text    `json:"type"`
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
	ID         httpapi.Text      `json:"id"`
	Content    []json.RawMessage `json:"content"`
	StopReason httpapi.Text      `json:"stop_reason"`
	Usage      *usage            `json:"usage"`
}

// An ending is what a message_delta says.
type ending struct {
	StopReason httpapi.Text `json:"stop_reason"`
}

// A delta is a piece of a block.
type delta struct {
	Type      httpapi.Text     `json:"type"`
	Text      httpapi.Fragment `json:"text"`
	Thinking  httpapi.Fragment `json:"thinking"`
	Input     httpapi.Fragment `json:"partial_json"`
	Signature httpapi.Text     `json:"signature"`
	Citation  json.RawMessage  `json:"citation"`
}
