package run

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/queue"
)

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
