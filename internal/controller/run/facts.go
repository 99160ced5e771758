package run

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/queue"
)

// facts are what the API server answered to the requests of a plan. Where it refused one,
// decide runs again on them.
type facts struct {
	// applied: the requests that a plan has beside its step were sent.
	applied bool
	// prepared is the first attempt, which needs no reservation: the next step is its pod.
	prepared *v1alpha1.Attempt
	// created is the pod of the attempt, as the API server stored it.
	created *corev1.Pod
	// podChanges is what others changed in the sandbox of the pod, which was deleted.
	podChanges string
	// podWithoutUser is a container of the pod, which was deleted, that the cluster gave no user.
	podWithoutUser string
	// podNameTaken: the name of the pod is that of another object.
	podNameTaken bool
	// podRefused, volumeRefused and childRefused are why the pod, its volume or the child
	// Run was not created.
	podRefused, volumeRefused, childRefused error
	// childRequest is the request of that child Run.
	childRequest string
	// volumeTaken: the name of the volume is that of another object. volumeDiffers: another
	// Run has just created it, with other access modes.
	volumeTaken, volumeDiffers bool
	// queued: another Run was given the place of this one in the queue of its Agent.
	queued *queue.Position
	// outdated: the Run has changed since it was read.
	outdated bool
	// failure is a request that failed in another way.
	failure *requestFailure
}

// requestFailure is a request that failed, or an observation, with the plan that needed it.
type requestFailure struct {
	plan plan
	err  error
}

// failed returns the facts of a plan that could not be applied.
func failed(p plan, err error) facts {
	return facts{applied: true, failure: &requestFailure{plan: p, err: err}}
}

// isAnswer reports whether an error says something about the object that was to be
// created. Others say that the API server cannot answer, or that the operator lacks a
// permission.
func isAnswer(err error) bool {
	switch apierr.Classify(err) {
	case apierr.None, apierr.Transient, apierr.Conflict, apierr.Forbidden:
		return false
	default:
		return true
	}
}

// needDecision reports whether another plan follows from the facts.
func (f facts) needDecision() bool {
	return f.prepared != nil || f.podChanges != "" || f.podWithoutUser != "" || f.podNameTaken || f.podRefused != nil || f.volumeRefused != nil || f.childRefused != nil ||
		f.volumeTaken || f.volumeDiffers || f.queued != nil || f.outdated || f.failure != nil
}
