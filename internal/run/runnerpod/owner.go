package runnerpod

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// BelongsTo reports whether a pod belongs to a Run. A user who may create pods chooses
// their owner and labels, and one who may change pods changes these, so neither
// decides: the proof is the runner's ServiceAccount, which an admission policy
// leaves to the operator, with the UID that the status records or the UID in the
// task, which the policy guards too. The owner counts only for a pod without a task.
func BelongsTo(pod *corev1.Pod, run *v1alpha1.Run) bool {
	if pod.Spec.ServiceAccountName != v1alpha1.RunnerServiceAccount {
		return false
	}
	if a := run.Status.Attempt; a != nil && a.PodUID != "" && a.PodUID == string(pod.UID) {
		return true
	}
	if of := TaskIn(pod).Run.UID; of != "" {
		return of == string(run.UID)
	}
	return metav1.IsControlledBy(pod, run)
}

// AttemptOf is the number of the attempt that a pod was created for; 0: unknown.
func AttemptOf(pod *corev1.Pod) int {
	if n := TaskIn(pod).Attempt; n > 0 {
		return n
	}
	n, err := strconv.Atoi(pod.Labels[v1alpha1.LabelAttempt])
	if err != nil {
		return 0
	}
	return n
}
