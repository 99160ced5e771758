package workflowrun

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// pendingLimit returns limits.pending of the Workflow, or the default while its revision is not known. The Run may
// lower it.
func pendingLimit(s state) time.Duration {
	most := snapshot.DefaultPending
	if s.revision != nil {
		most = snapshot.MostOfWorkflow(s.revision.Spec.Limits).Pending
	}
	if own := s.run.Spec.Limits; own != nil && durationOf(own.Pending) > 0 {
		return min(most, durationOf(own.Pending))
	}
	return most
}

// pendingSince returns since when the Run has waited for its start. Time in which it was paused, or waited for the end
// of the Run that it retries, does not count.
func pendingSince(s state) time.Time {
	if runstatus.OutcomeOf(s.run.Status).Reason == v1alpha1.ReasonPaused {
		return s.now // it is about to continue
	}
	since := s.run.CreationTimestamp.Time
	if resumed := s.run.Status.Internal.ResumedAt; resumed != nil && resumed.After(since) {
		since = resumed.Time
	}
	if ended := s.source.endedAt(s.now); ended.After(since) {
		return ended
	}
	return since
}

// waitUntil adds to a plan how long limits.pending lets the Run wait.
func waitUntil(s state, p plan, until time.Time) plan {
	p.Message = runstatus.WithDeadline(p.Message, until, pendingLimit(s), "limits.pending")
	p.wake = earlier(p.wake, until.Sub(s.now))
	return p
}

// childrenRefused waits, limits.pending at most, while the API server refuses all child Runs and
// none is active. Then it ends the Run, without finally: its child Runs would be refused too.
func childrenRefused(s state, p plan, cause string) plan {
	since := metav1.NewTime(s.now)
	if recorded := s.run.Status.Internal.PendingSince; recorded != nil {
		since = *recorded
	}
	limit := pendingLimit(s)
	if until := since.Add(limit); until.After(s.now) {
		p.pendingSince = &since
		return waitUntil(s, p, until)
	}
	message := fmt.Sprintf("Timed out after %s (limits.pending) waiting for: %s", limit, cause)
	end := failure(v1alpha1.ReasonPendingTimeout, message+". Fix the cause and create a new Run")
	if planned := p.progress.result; planned != nil {
		end = failure(planned.Reason, fmt.Sprintf("%s. finally did not complete: %s", planned.Message, message))
	}
	end.progress = p.progress
	return end
}

// hasActiveChild reports whether a child Run has not finished.
func hasActiveChild(s state) bool {
	return slices.ContainsFunc(s.children, func(c *v1alpha1.Run) bool { return !runstatus.IsFinished(c) })
}
