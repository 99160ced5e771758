package run

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/children"
	"github.com/deckhand-dev/deckhand/internal/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A plan is what to do next, as data: one step at most, and why. The zero plan
// does nothing and leaves the status as it is.
type plan struct {
	reason  string                 // why, as the condition Succeeded reports it
	message string                 // the same, for a person
	problem string                 // what could not be done about a finished Run
	outcome metav1.ConditionStatus // empty: unknown, the Run is active

	nextAttempt  *attemptReservation           // take the next attempt
	charged      budget                        // what the attempt before it is charged to
	create       *corev1.Pod                   // make the attempt's pod, and record it
	recordPod    *corev1.Pod                   // record a pod that was made but not recorded
	signal       *corev1.Pod                   // tell this pod's runner
	signals      task.Signals                  // this
	remove       []corev1.Pod                  // delete these pods, before anything is created
	child        *v1alpha1.Run                 // make this child Run
	request      v1alpha1.PendingRequest       // for this request
	deleteVolume *corev1.PersistentVolumeClaim // delete the Run's claim
	deleteRun    bool                          // delete the Run

	// setStates stops, pauses or resumes child Runs, beside the step.
	setStates []children.StateChange
	// restore are pods of the Run that lost their owner or labels, beside the step.
	restore []restoration
	// termination is a termination message that knows more than status; it is kept
	// where the runner's report would stand.
	termination *task.Termination
	wake        time.Duration // look again after this; 0: when something changes
}

// settles says whether the plan makes the Run final.
func (p plan) settles() bool { return p.outcome != "" && p.outcome != metav1.ConditionUnknown }

// budget is which budget an ended attempt is charged to.
type budget int

const (
	budgetNone        budget = iota // it waited for something outside
	budgetRetries                   // the work failed: spec.maxRetries
	budgetDisruptions               // the ground failed: spec.maxDisruptions
)

// waiting is a plan that does nothing but say why.
func waiting(reason, message string, wake time.Duration) plan {
	return plan{reason: reason, message: message, wake: wake}
}

// failure makes the Run final without success.
func failure(reason, message string) plan {
	return plan{reason: reason, message: task.Cut(message, task.MaxMessage), outcome: metav1.ConditionFalse}
}

// attemptReservation is the attempt to be claimed, and since when the Run is pending.
type attemptReservation struct {
	*v1alpha1.Attempt
	pendingSince metav1.Time
}

// nextAttempt is the attempt after the current one.
func nextAttempt(s state, c budget) *attemptReservation {
	n := s.attempt() + 1
	now := metav1.NewTime(s.now)
	next := &attemptReservation{
		Attempt:      &v1alpha1.Attempt{Number: n, Pod: runnerpod.Name(s.run.Name, n), StartedAt: now},
		pendingSince: now,
	}
	if s.revision != nil {
		next.AgentRevision = s.revision.Hash
	}
	if s.durable() {
		next.VolumeClaim = runnerpod.VolumeClaimName(s.run)
	}
	if last := s.run.Status.Attempt; last != nil {
		next.AgentRevision, next.VolumeClaim = last.AgentRevision, last.VolumeClaim
		since := s.run.Status.Internal.PendingSince
		switch {
		case c == budgetNone && hasWorked(s):
			next.pendingSince = metav1.NewTime(endedAt(s))
		case c == budgetNone && since != nil:
			next.pendingSince = *since
		}
	}
	return next
}
