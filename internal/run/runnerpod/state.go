package runnerpod

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Image is what a runner is made of.
type Image struct {
	Name       string
	PullPolicy corev1.PullPolicy
}

// Termination is the runner's termination message; nil: it left none.
func Termination(pod *corev1.Pod) *task.Termination {
	return DecodeTermination(Terminated(pod))
}

// DecodeTermination returns the termination message of a container; nil: it left none.
func DecodeTermination(end *corev1.ContainerStateTerminated) *task.Termination {
	if end == nil || end.Message == "" {
		return nil
	}
	var t task.Termination
	if json.Unmarshal([]byte(end.Message), &t) != nil {
		return nil
	}
	t = untrusted.Termination(t)
	return &t
}

// RunnerStatus is the state of the container runner; nil: the kubelet has not
// said.
func RunnerStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	if pod == nil {
		return nil
	}
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == RunnerContainer {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// Terminated is how the runner ended; nil: it has not.
func Terminated(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	if s := RunnerStatus(pod); s != nil {
		return s.State.Terminated
	}
	return nil
}

// IsAlive reports whether a pod may still do something.
func IsAlive(pod *corev1.Pod) bool {
	if pod == nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	return Terminated(pod) == nil
}

// IsStopping reports whether containers of a pod are active whose runner has ended: a sidecar
// may use the whole grace period.
func IsStopping(pod *corev1.Pod) bool {
	return pod != nil && !IsAlive(pod) && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// SignalsIn returns the signals of a pod.
func SignalsIn(pod *corev1.Pod) task.Signals {
	var s task.Signals
	if text := pod.Annotations[v1alpha1.AnnotationSignals]; text != "" {
		_ = json.Unmarshal([]byte(text), &s) // only the operator writes it; nonsense is nothing said
	}
	return s
}

// TaskIn is the task that a pod was given; without one, the zero Task.
func TaskIn(pod client.Object) task.Task {
	var t task.Task
	if json.Unmarshal([]byte(pod.GetAnnotations()[v1alpha1.AnnotationTask]), &t) != nil {
		return task.Task{}
	}
	return t
}
