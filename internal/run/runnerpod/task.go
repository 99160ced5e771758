package runnerpod

import (
	"encoding/json"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod/podtask"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// TaskOf returns the task that the runner of an attempt gets.
func TaskOf(in Input) task.Task { return podtask.Of(taskInput(in)) }

// TaskProblem returns why the task of an attempt does not fit a pod; empty: it fits.
func TaskProblem(in Input) string { return podtask.Problem(taskInput(in)) }

func taskInput(in Input) podtask.Input {
	out := podtask.Input{Run: in.Run, RunnerHash: in.Revision.RunnerHash, Attempt: in.Attempt, Limits: in.Limits, Durable: in.Durable}
	if to := in.Defaults.Traces; to != nil {
		out.Traces = &task.Traces{Endpoint: to.Endpoint, Content: to.Content, Metrics: to.Metrics, Root: runstatus.RootUID(in.Run)}
	}
	return out
}

// ToJSON encodes a value of a type that always has a JSON form.
func ToJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("encoding our own type: " + err.Error())
	}
	return data
}

// A RequiredConfigMap is a ConfigMap that a user names and that a pod mounts: the kubelet does not start the containers
// before it exists.
type RequiredConfigMap struct {
	Name string
	// Key must be in it; empty: any will do.
	Key string
	// Field is the field that names it, with its object.
	Field string
}

// RequiredConfigMaps returns the ConfigMaps without which the containers of a pod do not start. The revision is not
// among them, because the operator stores it again.
func RequiredConfigMaps(in Input) []RequiredConfigMap {
	b := newBuilder(in)
	var out []RequiredConfigMap
	for _, name := range in.Revision.Agent.Workspace.ConfigMaps {
		out = append(out, RequiredConfigMap{Name: name, Field: "spec.workspace.files of the Agent"})
	}
	for _, skill := range b.skills {
		if skill.ConfigMap != "" {
			out = append(out, RequiredConfigMap{Name: skill.ConfigMap, Field: "spec.skills of the Agent"})
		}
	}
	if ca := b.defaults.CABundle; ca != nil {
		field := "runner.caBundleConfigMapRef of the chart"
		if b.template.CABundle != nil {
			field = "spec.podTemplate.caBundleConfigMapRef of the Agent"
		}
		out = append(out, RequiredConfigMap{Name: string(ca.Name), Key: ca.Key, Field: field})
	}
	return out
}

// BelongsTo reports whether a pod belongs to a Run. A user who may create pods chooses their owner and labels, and a
// user who may change pods can change these, so neither counts. The proof is the runner's ServiceAccount, which an
// admission policy reserves for the operator, together with the UID in the status or in the task, which the policy
// protects too. The owner counts only for a pod without a task.
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

// AttemptOf returns the number of the attempt that a pod was created for; 0: unknown.
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

// Image is the image of a runner.
type Image struct {
	Name       string
	PullPolicy corev1.PullPolicy
}

// Termination returns the runner's termination message, or nil.
func Termination(pod *corev1.Pod) *task.Termination {
	return DecodeTermination(Terminated(pod))
}

// DecodeTermination returns the termination message of a container, or nil.
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

// RunnerStatus returns the status of the container runner; nil: the kubelet has not reported it.
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

// Terminated returns how the runner ended; nil: it has not.
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

// HasFetched reports whether a pod has prepared the workspace of its Run.
func HasFetched(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.InitContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.Name == FetchContainer && c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
	})
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

// TaskIn returns the task in a pod; without one, the zero Task.
func TaskIn(pod client.Object) task.Task {
	var t task.Task
	if json.Unmarshal([]byte(pod.GetAnnotations()[v1alpha1.AnnotationTask]), &t) != nil {
		return task.Task{}
	}
	return t
}
