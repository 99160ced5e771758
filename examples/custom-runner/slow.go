package main

import (
	"log/slog"
	"os"

	"github.com/deckhand-dev/deckhand/runner/events"
)

// slow is the duration in milliseconds from which a call counts as slow.
const slow = 10_000

var warnings = slog.New(slog.NewJSONHandler(os.Stderr, nil))

// logSlowCalls is a listener that logs a warning for each slow tool call.
func logSlowCalls(e events.Event) {
	if call, ok := e.Payload.(events.CallFinished); ok && call.DurationMs >= slow {
		warnings.Warn("A call was slow", "tool", call.Name, "milliseconds", call.DurationMs)
	}
}
