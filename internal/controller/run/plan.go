package run

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A plan is what to do next, as data: at most one step, and its reason. The zero plan does nothing and keeps the
// status.
type plan struct {
	reason  string                 // why, as the condition Succeeded reports it
	message string                 // the same, for users
	problem string                 // why something could not be done for a finished Run
	outcome metav1.ConditionStatus // empty: unknown, the Run is active

	nextAttempt  *attemptReservation           // start this attempt
	charged      budget                        // what the attempt before it counts against
	create       *corev1.Pod                   // create the pod of the attempt
	recordPod    *corev1.Pod                   // record a pod that was created and not recorded
	signal       *corev1.Pod                   // send the runner of this pod
	signals      task.Signals                  // these signals
	remove       []corev1.Pod                  // delete these pods first
	child        *v1alpha1.Run                 // create this child Run
	request      v1alpha1.PendingRequest       // for this request
	deleteVolume *corev1.PersistentVolumeClaim // delete the volume of the Run
	deleteRun    bool                          // delete the Run

	// setStates stops, pauses or resumes child Runs, besides the step.
	setStates []children.StateChange
	// restore has pods of the Run whose owner or labels are restored, besides the step.
	restore []restoration
	// termination is a termination message with more than the status has. It replaces the report of the runner.
	termination *task.Termination
	wake        time.Duration // reconcile again after this; 0: when something changes
}

// settles reports whether the plan makes the Run final.
func (p plan) settles() bool { return p.outcome != "" && p.outcome != metav1.ConditionUnknown }

// budget is the limit that an ended attempt counts against.
type budget int

const (
	budgetNone        budget = iota // nothing: it only waited
	budgetRetries                   // spec.maxRetries: the work failed
	budgetDisruptions               // spec.maxDisruptions: it was lost to infrastructure
)

// waiting returns a plan that only reports what the Run waits for.
func waiting(reason, message string, wake time.Duration) plan {
	return plan{reason: reason, message: message, wake: wake}
}

// failure returns a plan that ends the Run without success.
func failure(reason, message string) plan {
	return plan{reason: reason, message: task.Cut(message, task.MaxMessage), outcome: metav1.ConditionFalse}
}

// attemptReservation is an attempt that is recorded before its pod is created, and the time since when the Run is
// pending.
type attemptReservation struct {
	*v1alpha1.Attempt
	pendingSince metav1.Time
	// unrecorded: the pod is created first, and the attempt is recorded later.
	unrecorded bool
}

// nextAttempt returns the attempt after the current one.
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
