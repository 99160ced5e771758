package responses

import (
	"encoding/json"
	"fmt"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
)

// The types of items and events that are handled. Items of other types are not sent back; other events repeat the data
// of these.
const (
	typeMessage   = "message"
	typeReasoning = "reasoning"
	typeCall      = "function_call"

	eventItemAdded   = "response.output_item.added"
	eventItemDone    = "response.output_item.done"
	eventText        = "response.output_text.delta"
	eventRefusal     = "response.refusal.delta"
	eventSummary     = "response.reasoning_summary_text.delta"
	eventReasoning   = "response.reasoning_text.delta"
	eventArguments   = "response.function_call_arguments.delta"
	eventArgumentsIs = "response.function_call_arguments.done"
	eventCompleted   = "response.completed"
	eventIncomplete  = "response.incomplete"
	eventFailed      = "response.failed"
)

// An event is one event of a stream. Every field is optional, and a value of a wrong type
// counts as absent.
type event struct {
	Type      string           `json:"type"`
	Index     int              `json:"output_index"` // -1: none
	ItemID    string           `json:"item_id"`
	Summary   int              `json:"summary_index"`
	Content   int              `json:"content_index"`
	Delta     httpapi.Fragment `json:"delta"`
	Arguments string           `json:"arguments"`
	Item      json.RawMessage  `json:"item"`
	Response  *response        `json:"response"`
	Error     json.RawMessage  `json:"error"`
}

// decode decodes an event into e, whose memory it reuses.
func (e *event) decode(data []byte) error {
	*e = event{Index: -1}
	if err := httpapi.Unmarshal(data, e); err != nil {
		return fmt.Errorf("decoding an event: %w", err)
	}
	return nil
}

// A response is an answer as a whole, or its head and its end.
type response struct {
	Status     httpapi.ReasonText `json:"status"`
	Incomplete struct {
		Reason httpapi.ReasonText `json:"reason"`
	} `json:"incomplete_details"`
	Output []json.RawMessage `json:"output"`
	Usage  *usage            `json:"usage"`
	Error  json.RawMessage   `json:"error"`
}

// An outputItem is an item of an answer.
type outputItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Phase     httpapi.Text    `json:"phase"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Content   []contentPart   `json:"content"`
	Summary   []contentPart   `json:"summary"`
	Encrypted httpapi.Text    `json:"encrypted_content"`
}

// A contentPart is a part of a message, or of reasoning.
type contentPart struct {
	Text    httpapi.Text `json:"text"`
	Refusal httpapi.Text `json:"refusal"`
}
