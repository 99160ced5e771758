package run

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/queue"
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
	// reusedProgress is the progress of a Run that has the result of another.
	reusedProgress *v1alpha1.RunProgress
	wake           time.Duration // reconcile again after this; 0: when something changes
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
		if sharesSource(s.run) && s.source.VolumeClaim != nil {
			next.VolumeClaim = s.source.VolumeClaim.Name
		}
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

// facts are the results of the requests of a plan. If one was refused, decide runs again with them.
type facts struct {
	// applied: the requests that a plan has besides its step were sent.
	applied bool
	// prepared is the first attempt, if it needs no reservation: the next step creates its pod.
	prepared *v1alpha1.Attempt
	// created is the pod of the attempt, as the API server stored it.
	created *corev1.Pod
	// podChanges describes what others changed in the sandbox of the pod, which was deleted.
	podChanges string
	// podWithoutUser is a container without a user, assigned by the cluster, in a pod that was deleted.
	podWithoutUser string
	// podNameTaken: another object has the name of the pod.
	podNameTaken bool
	// podRefused, volumeRefused and childRefused are why the pod, its volume or the child
	// Run was not created.
	podRefused, volumeRefused, childRefused error
	// childRequest is the request of that child Run.
	childRequest string
	// volumeTaken: another object has the name of the volume. volumeDiffers: another Run has just created it, with
	// other access modes.
	volumeTaken, volumeDiffers bool
	// queued: another Run got the place of this one in the queue of its Agent.
	queued *queue.Position
	// outdated: the Run has changed since it was read.
	outdated bool
	// failure is a request that failed for another reason.
	failure *requestFailure
}

// requestFailure is a failed request of a plan, or a failed observation.
type requestFailure struct {
	plan plan
	err  error
}

// failed returns the facts of a plan that could not be applied.
func failed(p plan, err error) facts {
	return facts{applied: true, failure: &requestFailure{plan: p, err: err}}
}

// isAnswer reports whether an error is about the object that was to be created. Other errors mean that the API server
// cannot answer, or that the operator lacks a permission.
func isAnswer(err error) bool {
	switch apierr.Classify(err) {
	case apierr.None, apierr.Transient, apierr.Conflict, apierr.Forbidden:
		return false
	default:
		return true
	}
}

// needDecision reports whether decide must run again with the facts.
func (f facts) needDecision() bool {
	return f.prepared != nil || f.podChanges != "" || f.podWithoutUser != "" || f.podNameTaken || f.podRefused != nil || f.volumeRefused != nil || f.childRefused != nil ||
		f.volumeTaken || f.volumeDiffers || f.queued != nil || f.outdated || f.failure != nil
}
