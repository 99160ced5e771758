package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// Parts of messages that are true only while a Run waits: how runners end the message about a missing key or repository
// (runner/internal/config, runner/internal/attempt), the end of the operator's message about a missing object, and the
// end of the message about a failed request (apierr.Describe).
const (
	continues = "; the Run continues "
	byItself  = continues + "when it exists"
	tryAgain  = ". The operator tries again"
)

// waitingUnbounded waits for something outside of the Run, without a bound.
func waitingUnbounded(s state, reason, message string) plan {
	if wantsPause(s) {
		return waiting(v1alpha1.ReasonPaused, sentence(children.PausedMessage(s.run), message), 0)
	}
	return waiting(reason, message, 0)
}

// waitingBounded waits for something outside of the Run, limits.pending at most, and without a
// bound while the Run is paused.
func waitingBounded(s state, reason, message string) plan {
	if wantsPause(s) {
		return waitingUnbounded(s, reason, message)
	}
	left := pendingLeft(s)
	if left <= 0 {
		message, _, _ = strings.Cut(runstatus.TrimDeadline(message), continues)
		return failure(v1alpha1.ReasonPendingTimeout, fmt.Sprintf("Timed out after %s (limits.pending) waiting for: %s. Fix the cause and create a new Run", s.limits().pending, strings.TrimSuffix(message, tryAgain)))
	}
	return waiting(reason, untilPending(s, message), left)
}

// pendingLeft returns how long limits.pending still lets the Run wait.
func pendingLeft(s state) time.Duration {
	return s.limits().pending - s.now.Sub(s.pendingSince())
}

// untilPending adds to a message until when limits.pending lets the Run wait.
func untilPending(s state, message string) string {
	limit := s.limits().pending
	until := s.pendingSince().Add(limit)
	if !until.After(s.now) {
		return message
	}
	return runstatus.WithDeadline(message, until, limit, "limits.pending")
}
