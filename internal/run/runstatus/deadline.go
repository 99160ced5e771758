package runstatus

import (
	"fmt"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// waitsUntil begins the last sentence of the message of a Run that waits for a limited
	// time.
	waitsUntil = ". Waits until "
	// MaxCause is how many bytes of a cause WithDeadline keeps in any case.
	MaxCause = task.MaxMessage - 96
)

// WithDeadline adds to the message of a Run until when it waits, and by which limit. The time
// is absolute and in whole seconds, so that the message of a Run does not change while
// it waits.
func WithDeadline(message string, until time.Time, limit time.Duration, name string) string {
	layout := "15:04:05 UTC"
	if limit >= 24*time.Hour {
		layout = "2006-01-02 15:04:05 UTC"
	}
	end := fmt.Sprintf("%s%s (%s)", waitsUntil, until.UTC().Format(layout), name)
	return task.Cut(strings.TrimSuffix(TrimDeadline(message), "."), task.MaxMessage-len(end)) + end
}

// TrimDeadline returns a message without what WithDeadline added.
func TrimDeadline(message string) string {
	if i := strings.LastIndex(message, waitsUntil); i >= 0 && strings.HasSuffix(message, ")") {
		return message[:i]
	}
	return message
}
