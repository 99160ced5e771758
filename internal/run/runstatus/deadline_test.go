package runstatus_test

import (
	"strings"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestUntil(t *testing.T) {
	at := time.Date(2030, 1, 1, 6, 48, 0, 0, time.FixedZone("CET", 3600))
	for name, tc := range map[string]struct {
		message string
		until   time.Time
		limit   time.Duration
		want    string
	}{
		"within a day":          {"Agent x not found", at, 10 * time.Minute, "Agent x not found. Waits until 05:48:00 UTC (limits.pending)"},
		"longer":                {"Agent x not found", at, 48 * time.Hour, "Agent x not found. Waits until 2030-01-01 05:48:00 UTC (limits.pending)"},
		"fractions of a second": {"Agent x not found", at.Add(999 * time.Millisecond), time.Minute, "Agent x not found. Waits until 05:48:00 UTC (limits.pending)"},
		"a sentence":            {"Agent x not found.", at, time.Minute, "Agent x not found. Waits until 05:48:00 UTC (limits.pending)"},
	} {
		t.Run(name, func(t *testing.T) {
			got := runstatus.WithDeadline(tc.message, tc.until, tc.limit, "limits.pending")
			if got != tc.want {
				t.Errorf("Until() = %q, want %q", got, tc.want)
			}
			if cause := runstatus.TrimDeadline(got, tc.until, tc.limit, "limits.pending"); cause != "Agent x not found" {
				t.Errorf("TrimUntil() = %q", cause)
			}
		})
	}
}

func TestUntilFitsAMessage(t *testing.T) {
	long := task.Cut(strings.Repeat("é", task.MaxMessage), runstatus.MaxCause)
	until := time.Unix(1893456000, 0)
	got := runstatus.WithDeadline(long, until, 720*time.Hour, "limits.pending")
	if cause := runstatus.TrimDeadline(got, until, 720*time.Hour, "limits.pending"); len(got) > task.MaxMessage || cause != long {
		t.Errorf("%d bytes, of which %d are the cause", len(got), len(cause))
	}
	if got := runstatus.WithDeadline(strings.Repeat("x", 2*task.MaxMessage), time.Unix(1893456000, 0), time.Hour, "limits.pending"); len(got) > task.MaxMessage || !strings.HasSuffix(got, " UTC (limits.pending)") {
		t.Errorf("a longer cause: %q", got)
	}
}
