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

	claim  *attemptClaim                 // take the next attempt
	charge charge                        // what the attempt before it is charged to
	create *corev1.Pod                   // make the attempt's pod, and record it
	adopt  *corev1.Pod                   // record a pod that was made but not recorded
	signal *corev1.Pod                   // tell this pod's runner
	say    task.Signals                  // this
	remove []corev1.Pod                  // delete these pods, before anything is created
	child  *v1alpha1.Run                 // make this child Run
	asked  v1alpha1.PendingRequest       // for this request
	free   *corev1.PersistentVolumeClaim // delete the Run's claim
	forget bool                          // delete the Run

	// setStates stops, pauses or resumes child Runs, beside the step.
	setStates []children.StateChange
	// restore are pods of the Run that lost their owner or labels, beside the step.
	restore []restoration
	// lastWord is a termination message that knows more than status; it is kept
	// where the runner's report would stand.
	lastWord *task.Termination
	wake     time.Duration // look again after this; 0: when something changes
}

// settles says whether the plan makes the Run final.
func (p plan) settles() bool { return p.outcome != "" && p.outcome != metav1.ConditionUnknown }

// A charge is which budget an ended attempt is charged to.
type charge int

const (
	chargeNone    charge = iota // it waited for something outside
	chargeFailure               // the work failed: spec.maxRetries
	chargeGround                // the ground failed: spec.maxDisruptions
)

// waiting is a plan that does nothing but say why.
func waiting(reason, message string, wake time.Duration) plan {
	return plan{reason: reason, message: message, wake: wake}
}

// failure makes the Run final without success.
func failure(reason, message string) plan {
	return plan{reason: reason, message: task.Cut(message, task.MaxMessage), outcome: metav1.ConditionFalse}
}

// An attemptClaim is the attempt to be claimed, and since when the Run is pending.
type attemptClaim struct {
	*v1alpha1.Attempt
	pendingSince metav1.Time
}

// nextAttempt is the attempt after the current one.
func nextAttempt(w world, c charge) *attemptClaim {
	n := w.attempt() + 1
	now := metav1.NewTime(w.now)
	next := &attemptClaim{
		Attempt:      &v1alpha1.Attempt{Number: n, Pod: runnerpod.Name(w.run.Name, n), StartedAt: now},
		pendingSince: now,
	}
	if w.version != nil {
		next.AgentRevision = w.version.Hash
	}
	if w.durable() {
		next.VolumeClaim = runnerpod.VolumeClaimName(w.run)
	}
	if last := w.run.Status.Attempt; last != nil {
		next.AgentRevision, next.VolumeClaim = last.AgentRevision, last.VolumeClaim
		since := w.run.Status.Internal.PendingSince
		switch {
		case c == chargeNone && worked(w):
			next.pendingSince = metav1.NewTime(endedAt(w))
		case c == chargeNone && since != nil:
			next.pendingSince = *since
		}
	}
	return next
}
