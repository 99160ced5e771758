package objectcache

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/children"
	"github.com/deckhand-dev/deckhand/internal/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// lastApplied is what kubectl apply remembers of a manifest: all of it.
const lastApplied = corev1.LastAppliedConfigAnnotation

// Pod returns what the cache keeps of a Pod: little more than metadata and how
// its containers are. The controller reads the rest of the current pod from the API server.
func Pod(o any) (any, error) {
	pod, is := o.(*corev1.Pod)
	if !is {
		return o, nil
	}
	if pod.Spec.Containers == nil {
		return pod, nil // client-go transforms a listed object twice
	}
	kept := &corev1.Pod{
		ObjectMeta: reducedMeta(&pod.ObjectMeta),
		Spec:       corev1.PodSpec{ServiceAccountName: pod.Spec.ServiceAccountName},
		Status: corev1.PodStatus{
			Phase: pod.Status.Phase, Reason: pod.Status.Reason, Message: pod.Status.Message,
			InitContainerStatuses: reducedStatuses(pod.Status.InitContainerStatuses),
			ContainerStatuses:     reducedStatuses(pod.Status.ContainerStatuses),
		},
	}
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			kept.Spec.Volumes = append(kept.Spec.Volumes, v)
		}
	}
	if name := runnerpod.RevisionName(pod); name != "" {
		kept.Spec.Volumes = append(kept.Spec.Volumes, runnerpod.RevisionVolume(name))
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget || c.Type == corev1.PodScheduled && runnerpod.IsAlive(pod) {
			kept.Status.Conditions = append(kept.Status.Conditions, c)
		}
	}
	if pod.Annotations[v1alpha1.AnnotationTask] != "" {
		t := runnerpod.TaskIn(pod)
		kept.Annotations[v1alpha1.AnnotationTask] = string(runnerpod.ToJSON(task.Task{Run: t.Run, Attempt: t.Attempt, Meter: t.Meter}))
	}
	return kept, nil
}

// reducedMeta is metadata with the labels and annotations that are read.
func reducedMeta(m *metav1.ObjectMeta) metav1.ObjectMeta {
	out := metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
		Labels: map[string]string{}, Annotations: map[string]string{}, OwnerReferences: m.OwnerReferences,
	}
	for _, k := range []string{v1alpha1.LabelRun, v1alpha1.LabelAttempt, v1alpha1.LabelVolumeClaim, v1alpha1.LabelEgress} {
		if v, has := m.Labels[k]; has {
			out.Labels[k] = v
		}
	}
	for _, k := range []string{v1alpha1.AnnotationRetention, v1alpha1.AnnotationSignals, v1alpha1.AnnotationEgress} {
		if v, has := m.Annotations[k]; has {
			out.Annotations[k] = v
		}
	}
	return out
}

// reducedStatuses are how containers are.
func reducedStatuses(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, container := range all {
		kept := corev1.ContainerStatus{Name: container.Name, Image: container.Image, State: container.State}
		if end := container.State.Terminated; end != nil {
			kept.Image, kept.State.Terminated = "", &corev1.ContainerStateTerminated{ExitCode: end.ExitCode, Reason: end.Reason, Message: end.Message, FinishedAt: end.FinishedAt}
		}
		out = append(out, kept)
	}
	return out
}

// Run returns what the cache keeps of a Run: of a finished one neither its
// prompt nor its last steps nor, unless it is a part of another Run, its result.
func Run(o any) (any, error) {
	run, is := o.(*v1alpha1.Run)
	if !is {
		return o, nil
	}
	if isReduced(run) {
		return run, nil // client-go transforms a listed object twice
	}
	kept := *run // what is shared with it is not changed
	kept.ManagedFields = nil
	if !runstatus.IsFinished(run) || run.Spec.Agent == "" {
		return &kept, nil
	}
	if _, has := run.Annotations[lastApplied]; has {
		kept.Annotations = maps.Clone(run.Annotations)
		delete(kept.Annotations, lastApplied)
	}
	kept.Spec.Prompt, kept.Spec.Input = "", nil
	kept.Status.Progress = reducedProgress(run)
	return &kept, nil
}

// isReduced reports whether there is nothing that the cache drops of a Run.
func isReduced(run *v1alpha1.Run) bool {
	if run.ManagedFields != nil {
		return false
	}
	if !runstatus.IsFinished(run) || run.Spec.Agent == "" {
		return true
	}
	_, applied := run.Annotations[lastApplied]
	return !applied && run.Spec.Prompt == "" && run.Spec.Input == nil && hasReducedProgress(run)
}

func hasReducedProgress(run *v1alpha1.Run) bool {
	p := run.Status.Progress
	if p == nil {
		return true
	}
	if p.Recent != nil || p.Step != nil || p.Confinement != nil || p.Refused != nil {
		return false
	}
	return p.Result == nil || children.ParentOf(run) != nil || p.Result.Text == "" && p.Result.Output == "" && p.Result.Files == nil
}

func reducedProgress(run *v1alpha1.Run) *v1alpha1.RunProgress {
	if run.Status.Progress == nil {
		return nil
	}
	p := *run.Status.Progress
	p.Recent, p.Step, p.Confinement, p.Refused = nil, nil, nil, nil
	if p.Result != nil && children.ParentOf(run) == nil {
		r := *p.Result
		r.Text, r.Output, r.Files = "", "", nil
		p.Result = &r
	}
	return &p
}
