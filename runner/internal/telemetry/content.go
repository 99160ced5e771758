package telemetry

import (
	"encoding/json"

	"github.com/deckhand-dev/deckhand/internal/shared/otlp"
	"github.com/deckhand-dev/deckhand/internal/shared/otlp/semconv"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// finishReason returns the word of the conventions.
func finishReason(f step.Finish) string {
	switch f {
	case step.FinishCalls:
		return "tool_call"
	case step.FinishRefusal:
		return "content_filter"
	case step.FinishOther:
		return "error"
	case step.FinishStop, step.FinishLength:
		return string(f)
	}
	return string(f)
}

// usage returns tokens and cost. A cost that is not known is absent.
func usage(u step.Usage) []otlp.Attribute {
	all := []otlp.Attribute{{Key: semconv.InputTokens, Value: u.InputTokens}, {Key: semconv.OutputTokens, Value: u.OutputTokens}}
	for _, a := range []otlp.Attribute{{Key: semconv.CacheReadTokens, Value: u.CacheReadTokens}, {Key: semconv.CacheWriteTokens, Value: u.CacheWriteTokens}, {Key: semconv.ReasoningTokens, Value: u.ReasoningTokens}} {
		if a.Value != int64(0) {
			all = append(all, a)
		}
	}
	if u.Priced {
		all = append(all, otlp.Attribute{Key: semconv.CostUSD, Value: float64(u.CostMicroUSD) / 1e6})
	}
	return all
}

// A message is an output message in the form of the conventions.
type message struct {
	Role   string `json:"role"`
	Parts  []part `json:"parts"`
	Finish string `json:"finish_reason,omitempty"`
}

type part struct {
	Type      string          `json:"type"`
	Content   string          `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// messages returns what a model answered, without its reasoning.
func messages(s step.Step) json.RawMessage {
	m := message{Role: "assistant", Finish: finishReason(s.Finish)}
	if text := s.Text(); text != "" {
		m.Parts = append(m.Parts, part{Type: "text", Content: text})
	}
	for _, c := range s.Calls {
		m.Parts = append(m.Parts, part{Type: "tool_call", ID: c.ID, Name: c.Name, Arguments: c.Args})
	}
	out, err := json.Marshal([]message{m})
	if err != nil {
		return nil // arguments that are not JSON
	}
	return out
}
