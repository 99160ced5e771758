package run

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Pods stay for podRetention after they have ended, so most pods of an installation
// have ended. The cache of Pods has the others; a second cache has the metadata of those
// that have ended, in a third of the memory.
var (
	// LivePods selects the pods that have not ended.
	LivePods = fields.ParseSelectorOrDie("status.phase!=Succeeded,status.phase!=Failed")
	// EndedPods selects runner pods that have ended. [ours] needs the ServiceAccount,
	// which metadata does not have.
	EndedPods = fields.ParseSelectorOrDie("status.phase!=Pending,status.phase!=Running,status.phase!=Unknown,spec.serviceAccountName=" + v1alpha1.RunnerServiceAccount)
)

// PodMetadata is an object to get or watch the metadata of a Pod.
func PodMetadata() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
}

// CachedEndedPod returns what the cache keeps of the metadata of an ended Pod.
func CachedEndedPod(o any) (any, error) {
	m, is := o.(*metav1.PartialObjectMetadata)
	if !is || m.ManagedFields == nil { // client-go transforms a listed object twice
		return o, nil
	}
	t := runnerpod.TaskIn(m)
	kept := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
		Annotations: map[string]string{v1alpha1.AnnotationTask: string(encode(task.Task{Run: t.Run, Attempt: t.Attempt}))},
	}}
	if retention, has := m.Annotations[v1alpha1.AnnotationRetention]; has {
		kept.Annotations[v1alpha1.AnnotationRetention] = retention
	}
	if !hasOwnerAndLabelsOf(m, t) {
		all := reducedMeta(&m.ObjectMeta)
		kept.OwnerReferences, kept.Labels = all.OwnerReferences, all.Labels
	}
	return kept, nil
}

// hasOwnerAndLabelsOf reports whether a pod has the owner and the labels that the
// operator gave it. The cache does not repeat these.
func hasOwnerAndLabelsOf(m *metav1.PartialObjectMetadata, t task.Task) bool {
	return len(m.OwnerReferences) == 1 && t.Run.UID != "" && cmp.Or(metav1.GetControllerOf(m), &metav1.OwnerReference{}).UID == types.UID(t.Run.UID) &&
		m.Labels[v1alpha1.LabelRun] == t.Run.Name && m.Labels[v1alpha1.LabelAttempt] == strconv.Itoa(t.Attempt)
}

// podFromMetadata returns an ended pod of a finished Run as far as its metadata tells.
func podFromMetadata(m *metav1.PartialObjectMetadata, run *v1alpha1.Run) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: m.ObjectMeta,
		Spec:       corev1.PodSpec{ServiceAccountName: v1alpha1.RunnerServiceAccount}, // by [EndedPods]
		Status:     corev1.PodStatus{Phase: corev1.PodSucceeded},                      // or Failed, which makes no difference to a finished Run
	}
	if t := runnerpod.TaskIn(m); m.Labels == nil && t.Run.UID == string(run.UID) {
		pod.Labels = map[string]string{v1alpha1.LabelRun: t.Run.Name, v1alpha1.LabelAttempt: strconv.Itoa(t.Attempt)}
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(run, v1alpha1.GroupVersion.WithKind("Run"))}
	}
	return pod
}

// cachedPod gets a pod of a Run; nil: the caches have none. Of an ended pod of a
// finished Run it is only the metadata, which is all that deleting it needs. An ended
// pod of another Run is read from the API server.
func (r *Reconciler) cachedPod(ctx context.Context, run *v1alpha1.Run, key client.ObjectKey) (*corev1.Pod, error) {
	var pod corev1.Pod
	err := r.client.Get(ctx, key, &pod)
	if err == nil || !apierrors.IsNotFound(err) || r.ended == nil {
		return ignoreMissingPod(&pod, key, err)
	}
	m := PodMetadata()
	if err := r.ended.Get(ctx, key, m); err != nil {
		return ignoreMissingPod(nil, key, err)
	}
	if run.Status.CompletionTime == nil {
		return ignoreMissingPod(&pod, key, r.live.Get(ctx, key, &pod))
	}
	return podFromMetadata(m, run), nil
}

// ignoreMissingPod returns the pod that was got; nil: there is none.
func ignoreMissingPod(pod *corev1.Pod, key client.ObjectKey, err error) (*corev1.Pod, error) {
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // absent is a fact, not a fault
	case err != nil:
		return nil, fmt.Errorf("getting Pod %s: %w", key.Name, err)
	}
	return pod, nil
}
