package workflowrun

import (
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// refusedInterval is how soon a refused request is sent again.
const refusedInterval = 15 * time.Second

// requestFailure is a failed request of a plan, or a failed observation.
type requestFailure struct {
	plan plan
	err  error
}

// requestFailed reports a failed request. Nothing of its plan is recorded, unless the plan ends the Run: the next
// Reconcile decides again.
func requestFailed(s state) (plan, bool) {
	if s.failure == nil {
		return plan{}, false
	}
	p, err := s.failure.plan, s.failure.err
	text := task.Cut(apierr.Describe(err), runstatus.MaxCause)
	next := plan{Outcome: runstatus.OutcomeOf(s.run.Status), wake: earlier(p.wake, refusedInterval)}
	next.Problem = text
	switch {
	case !active(s):
	case p.Settles():
		next.Outcome, next.progress = p.Outcome, p.progress
	case !s.hasStarted() && apierr.IsRefusal(err):
		next = cannotStart(s, next, text)
	default:
		next.Message = text
	}
	return next, true
}

// cannotStart waits until a Run can start, limits.pending at most.
func cannotStart(s state, p plan, text string) plan {
	limit := pendingLimit(s)
	until := pendingSince(s).Add(limit)
	if !until.After(s.now) {
		return failure(v1alpha1.ReasonPendingTimeout, fmt.Sprintf("Timed out after %s (limits.pending): %s. Then create a new Run", limit, text))
	}
	p.Reason, p.Message = v1alpha1.ReasonPending, text
	return waitUntil(s, p, until)
}
