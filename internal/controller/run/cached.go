package run

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Most objects in the cache are finished Runs and their ended pods, which stay for
// podRetention and longer. The cache keeps of these what decisions read. That loses
// nothing on the API server: a status is patched field by field, and only where it
// changes, and pods are patched in their owner and labels alone.

// lastApplied is what kubectl apply remembers of a manifest: all of it.
const lastApplied = corev1.LastAppliedConfigAnnotation

// CachedPod returns what the cache keeps of a Pod: of an ended one, little more than
// metadata and how it ended.
func CachedPod(o any) (any, error) {
	pod, is := o.(*corev1.Pod)
	if !is {
		return o, nil
	}
	if !isEnded(pod) {
		if pod.ManagedFields != nil {
			pod.ManagedFields = nil
		}
		return pod, nil
	}
	kept := &corev1.Pod{
		ObjectMeta: keptMeta(&pod.ObjectMeta, []string{v1alpha1.LabelRun, v1alpha1.LabelAttempt}, []string{v1alpha1.AnnotationRetention, v1alpha1.AnnotationSignals}),
		Spec:       corev1.PodSpec{ServiceAccountName: pod.Spec.ServiceAccountName},
		Status: corev1.PodStatus{
			Phase: pod.Status.Phase, Reason: pod.Status.Reason, Message: pod.Status.Message,
			InitContainerStatuses: keptStatuses(pod.Status.InitContainerStatuses),
			ContainerStatuses:     keptStatuses(pod.Status.ContainerStatuses),
		},
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget {
			kept.Status.Conditions = append(kept.Status.Conditions, c)
		}
	}
	if pod.Annotations[v1alpha1.AnnotationTask] != "" {
		t := taskIn(pod)
		short := task.Task{Run: t.Run, Attempt: t.Attempt, Meter: t.Meter}
		kept.Annotations[v1alpha1.AnnotationTask] = string(encode(short))
	}
	return kept, nil
}

// isEnded reports whether nothing of a pod runs any more.
func isEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// keptStatuses are how containers ended.
func keptStatuses(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, s := range all {
		if end := s.State.Terminated; end != nil && (s.Name == runnerContainer || end.ExitCode != 0) {
			kept := &corev1.ContainerStateTerminated{ExitCode: end.ExitCode, Reason: end.Reason, Message: end.Message, FinishedAt: end.FinishedAt}
			out = append(out, corev1.ContainerStatus{Name: s.Name, State: corev1.ContainerState{Terminated: kept}})
		}
	}
	return out
}

// CachedRun returns what the cache keeps of a Run: of a finished one neither its
// prompt nor its last steps nor, unless it is a part of another Run, its result.
func CachedRun(o any) (any, error) {
	run, is := o.(*v1alpha1.Run)
	if !is {
		return o, nil
	}
	if run.ManagedFields == nil && !isOver(run) {
		return run, nil
	}
	kept := *run // what is shared with it is not changed
	kept.ManagedFields = nil
	if !isOver(run) || run.Spec.Agent == "" {
		return &kept, nil
	}
	if _, has := run.Annotations[lastApplied]; has {
		kept.Annotations = maps.Clone(run.Annotations)
		delete(kept.Annotations, lastApplied)
	}
	kept.Spec.Prompt, kept.Spec.Parameters = "", nil
	kept.Status.Progress = keptProgress(run)
	return &kept, nil
}

func keptProgress(run *v1alpha1.Run) *v1alpha1.RunProgress {
	if run.Status.Progress == nil {
		return nil
	}
	p := *run.Status.Progress
	p.Recent, p.Step, p.Confinement = nil, nil, nil
	if p.Result != nil && partOf(run) == nil {
		r := *p.Result
		r.Text, r.Output, r.Files = "", "", nil
		p.Result = &r
	}
	return &p
}

// keptMeta is metadata with these labels and annotations alone.
func keptMeta(m *metav1.ObjectMeta, labels, annotations []string) metav1.ObjectMeta {
	out := metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
		Labels: maps.Clone(m.Labels), Annotations: maps.Clone(m.Annotations), OwnerReferences: m.OwnerReferences,
	}
	maps.DeleteFunc(out.Labels, func(k, _ string) bool { return !slices.Contains(labels, k) })
	maps.DeleteFunc(out.Annotations, func(k, _ string) bool { return !slices.Contains(annotations, k) })
	return out
}

// whole reads from the API server what the cache keeps in part: the ended pod of an
// attempt that the status does not record yet, which is compared with what was asked
// for before it is recorded.
func (r *Reconciler) whole(ctx context.Context, run *v1alpha1.Run, pods []corev1.Pod) ([]corev1.Pod, error) {
	a := run.Status.Attempt
	if a == nil || a.PodUID != "" {
		return pods, nil
	}
	at := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Name == a.Pod && isEnded(&p) })
	if at < 0 {
		return pods, nil
	}
	var pod corev1.Pod
	err := r.live.Get(ctx, client.ObjectKeyFromObject(&pods[at]), &pod)
	switch {
	case apierrors.IsNotFound(err), err == nil && pod.UID != pods[at].UID:
		return slices.Delete(pods, at, at+1), nil
	case err != nil:
		return nil, fmt.Errorf("getting Pod %s: %w", a.Pod, err)
	}
	pods[at] = pod
	return pods, nil
}
