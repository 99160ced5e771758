package main

import (
	"log/slog"
	"os"

	"github.com/deckhand-dev/deckhand/runner/events"
)

// slow is from when on a call counts as slow.
const slow = 10_000 // milliseconds

var warnings = slog.New(slog.NewJSONHandler(os.Stderr, nil))

// tellSlow hears of everything that happens, and tells of slow calls.
func tellSlow(h events.Event) {
	if call, ok := h.Payload.(events.CallFinished); ok && call.DurationMs >= slow {
		warnings.Warn("A call was slow", "tool", call.Name, "milliseconds", call.DurationMs)
	}
}
