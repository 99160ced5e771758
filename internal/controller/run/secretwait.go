package run

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
)

// waitedForSecret reports whether an attempt ended before its first call because a Secret was missing. Such an attempt
// counts against no limit, not even limits.duration, and its pod is deleted when the next attempt starts.
func waitedForSecret(pod *corev1.Pod) bool {
	if pod == nil || runnerpod.IsAlive(pod) || outcomeOfPod(pod).reason != v1alpha1.ReasonSecretMissing {
		return false
	}
	t := runnerpod.Termination(pod)
	if t == nil {
		return true // an init container waited: the runner did not start
	}
	before := runnerpod.TaskIn(pod).Meter
	return t.Counts.Steps <= before.Steps && t.Counts.ModelCalls <= before.ModelCalls && t.Counts.ToolCalls <= before.ToolCalls
}

// hasWorked reports whether the runner of the current attempt worked before it ended.
func hasWorked(s state) bool {
	pod := s.pod()
	return runnerpod.Termination(pod) != nil && !waitedForSecret(pod)
}

// podsThatWaited returns the pods of earlier attempts that only waited for a Secret.
func podsThatWaited(s state) []corev1.Pod {
	var out []corev1.Pod
	for i := range s.pods {
		pod := &s.pods[i]
		if pod.Name != s.run.Status.Attempt.Pod && pod.DeletionTimestamp == nil && waitedForSecret(pod) {
			out = append(out, *pod)
		}
	}
	return out
}
