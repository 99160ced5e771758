package telemetry

import (
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A request that an earlier attempt made was asked at a time that is cut to the second.
func TestSpanOfAWaitBeginsWhenTheUserWasAsked(t *testing.T) {
	seen := time.Date(2026, 1, 2, 12, 0, 9, 400e6, time.UTC)
	for name, tc := range map[string]struct {
		askedAt string
		want    time.Time
	}{
		"in this attempt":       {"2026-01-02T12:00:09Z", seen},
		"in an earlier attempt": {"2026-01-02T12:00:02Z", seen.Truncate(time.Second).Add(-7 * time.Second)},
		"at no known time":      {"", seen},
	} {
		t.Run(name, func(t *testing.T) {
			tracer := newTracer(Options{Task: task.Task{Traces: &task.Traces{}}})
			tracer.span(events.Event{At: seen, Payload: events.Pending{ID: "r", Kind: "Approval", AskedAt: tc.askedAt}})
			span, has := tracer.span(events.Event{At: seen.Add(time.Minute), Payload: events.Decided{Request: "r"}})
			if !has || !span.Start.Equal(tc.want) || !span.End.Equal(seen.Add(time.Minute)) {
				t.Errorf("span %v from %v to %v, want from %v", has, span.Start, span.End, tc.want)
			}
		})
	}
}
