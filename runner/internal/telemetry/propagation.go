package telemetry

import (
	"cmp"
	"encoding/hex"

	"github.com/deckhand-dev/deckhand/internal/shared/otlp"
	"github.com/deckhand-dev/deckhand/internal/shared/otlp/semconv"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Traceparent returns the function that makes the header traceparent of a tool call, so that a
// server can put its own spans below that of the call. Nil: the task sends no traces.
// https://www.w3.org/TR/trace-context/#traceparent-header
func Traceparent(t task.Task) func(callID string) string {
	if t.Traces == nil || t.Traces.Endpoint == "" {
		return nil
	}
	trace := otlp.TraceOf(cmp.Or(t.Traces.Root, t.Run.UID))
	return func(callID string) string {
		span := toolSpan(t, callID)
		return "00-" + hex.EncodeToString(trace[:]) + "-" + hex.EncodeToString(span[:]) + "-01"
	}
}

// toolSpan returns the span of a tool call.
func toolSpan(t task.Task, callID string) otlp.SpanID {
	return otlp.SpanOf(t.Run.UID, semconv.OperationTool, callID)
}
