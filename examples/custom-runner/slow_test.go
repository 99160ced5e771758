package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/events"
)

func TestSlowCallsAreLogged(t *testing.T) {
	var logged bytes.Buffer
	was := warnings
	warnings = slog.New(slog.NewJSONHandler(&logged, nil))
	t.Cleanup(func() { warnings = was })
	for _, p := range []events.Payload{
		events.CallFinished{Name: "Quick", DurationMs: slow - 1}, events.CallFinished{Name: "Slow", DurationMs: slow}, events.Nudged{},
	} {
		logSlowCalls(events.Event{Payload: p})
	}
	if got := logged.String(); !strings.Contains(got, `"tool":"Slow"`) || strings.Contains(got, "Quick") {
		t.Errorf("it logs %q", got)
	}
}
