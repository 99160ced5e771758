package anthropic

import (
	"encoding/json"
	"fmt"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
)

// The types of events, blocks and deltas that are handled. All others are ignored, or kept
// unchanged.
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

// An event is one event of a stream, or a whole answer without streaming. The official client refuses values of other
// types than Anthropic's, which some servers send. Every field is optional, and a value of a wrong type counts as
// absent.
type event struct {
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Block   json.RawMessage `json:"content_block"`
	Delta   delta           `json:"delta"`
	Message *message        `json:"message"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
	message
}

// A message is an answer as a whole.
type message struct {
	ID         string             `json:"id"`
	Content    []json.RawMessage  `json:"content"`
	StopReason httpapi.ReasonText `json:"stop_reason"`
	Usage      *usage             `json:"usage"`
}

// A delta is a part of a block, or how a message ends.
type delta struct {
	Type       string             `json:"type"`
	Text       httpapi.Fragment   `json:"text"`
	Thinking   httpapi.Fragment   `json:"thinking"`
	Input      httpapi.Fragment   `json:"partial_json"`
	Signature  string             `json:"signature"`
	Citation   json.RawMessage    `json:"citation"`
	StopReason httpapi.ReasonText `json:"stop_reason"`
}

// decode decodes an event into e, whose memory it reuses.
func (e *event) decode(data []byte) error {
	*e = event{}
	if err := httpapi.Unmarshal(data, e); err != nil {
		return fmt.Errorf("decoding an event: %w", err)
	}
	return nil
}
