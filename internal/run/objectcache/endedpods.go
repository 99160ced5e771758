package objectcache

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Pods stay for retention.pod after they have ended, so most pods of an installation have ended. A second cache has
// only the metadata of ended pods, in a third of the memory; the cache of Pods has the others.
var (
	// LivePods selects the pods that have not ended.
	LivePods = fields.ParseSelectorOrDie("status.phase!=Succeeded,status.phase!=Failed")
	// EndedPods selects runner pods that have ended. [runnerpod.BelongsTo] needs the ServiceAccount,
	// which metadata does not have.
	EndedPods = fields.ParseSelectorOrDie("status.phase!=Pending,status.phase!=Running,status.phase!=Unknown,spec.serviceAccountName=" + v1alpha1.RunnerServiceAccount)
)

// PodMetadata is an object to get or watch the metadata of a Pod.
func PodMetadata() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
}

// EndedPod returns what the cache keeps of the metadata of an ended Pod.
func EndedPod(o any) (any, error) {
	m, is := o.(*metav1.PartialObjectMetadata)
	if !is || hasReducedMetadata(m) { // client-go transforms a listed object twice
		return o, nil
	}
	t := runnerpod.TaskIn(m)
	kept := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
		Annotations: map[string]string{v1alpha1.AnnotationTask: string(runnerpod.ToJSON(task.Task{Run: t.Run, Attempt: t.Attempt}))},
	}}
	if retention, has := m.Annotations[v1alpha1.AnnotationRetention]; has {
		kept.Annotations[v1alpha1.AnnotationRetention] = retention
	}
	if !hasOwnerAndLabelsOf(m, t) {
		all := reducedMeta(&m.ObjectMeta)
		kept.OwnerReferences, kept.Labels = all.OwnerReferences, all.Labels
		if kept.Labels == nil { // nil stands for those that the operator gave it
			kept.Labels = map[string]string{}
		}
	}
	return kept, nil
}

// hasReducedMetadata reports whether the metadata of an ended pod has nothing that the cache drops. Every pod of the
// operator has more annotations than these two, but not always managed fields.
func hasReducedMetadata(m *metav1.PartialObjectMetadata) bool {
	for k := range m.Annotations {
		if k != v1alpha1.AnnotationTask && k != v1alpha1.AnnotationRetention {
			return false
		}
	}
	return m.ManagedFields == nil
}

// hasOwnerAndLabelsOf reports whether a pod has the owner and the labels that the
// operator gave it. The cache does not repeat these.
func hasOwnerAndLabelsOf(m *metav1.PartialObjectMetadata, t task.Task) bool {
	return len(m.OwnerReferences) == 1 && t.Run.UID != "" && cmp.Or(metav1.GetControllerOf(m), &metav1.OwnerReference{}).UID == types.UID(t.Run.UID) &&
		m.Labels[v1alpha1.LabelRun] == t.Run.Name && m.Labels[v1alpha1.LabelAttempt] == strconv.Itoa(t.Attempt)
}

// PodFromMetadata returns an ended pod with the facts in its metadata.
func PodFromMetadata(m *metav1.PartialObjectMetadata, run *v1alpha1.Run) *corev1.Pod {
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

// runAnnotations are the annotations of a Run whose values are read.
var runAnnotations = []string{
	v1alpha1.AnnotationRevisionHash, v1alpha1.AnnotationVolumeClaim, v1alpha1.AnnotationDigest, v1alpha1.AnnotationRootRun,
	v1alpha1.AnnotationPaused, v1alpha1.AnnotationScheduledAt, v1alpha1.AnnotationInputHash, v1alpha1.AnnotationReuseOf,
}

// runMeta returns the metadata that is kept of a Run. Its labels are read by policies and
// inherited by its pod and its child Runs, so that all are kept of a Run that admission lets
// through.
func runMeta(run *v1alpha1.Run) metav1.ObjectMeta {
	kept := identity(&run.ObjectMeta)
	kept.OwnerReferences = reducedOwners(run.OwnerReferences)
	kept.Labels, kept.Annotations = runLabels(run.Labels), annotationsOfRun(run.Annotations)
	return kept
}

// annotationsOfRun returns the annotations of a Run that are read, and one for each fact that the presence of an
// annotation shows: that a GitOps tool tracks the Run, that a backup tool created it.
func annotationsOfRun(all map[string]string) map[string]string {
	kept := chosen(all, runAnnotations...)
	for _, first := range []string{
		firstKey(all, func(key, _ string) bool { return runstatus.IsTrackingKey(key) }),
		firstKey(all, func(key, value string) bool { return runstatus.IsRestoreAnnotation(key) && value != "" }),
	} {
		if first == "" {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[first] = "true"
	}
	return kept
}

// firstKey returns the first key for which is returns true, or an empty text.
func firstKey(all map[string]string, is func(key, value string) bool) string {
	first := ""
	for key, value := range all {
		if is(key, value) && (first == "" || key < first) {
			first = key
		}
	}
	return first
}

// runLabels returns at most maxLabels labels, beginning with the labels that the operator reads.
func runLabels(all map[string]string) map[string]string {
	if len(all) <= maxLabels {
		return all
	}
	keys := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(rankOfLabel(a), rankOfLabel(b)), strings.Compare(a, b))
	})
	kept := make(map[string]string, maxLabels)
	for _, k := range keys[:maxLabels] {
		kept[k] = all[k]
	}
	return kept
}

// rankOfLabel orders the labels of a Run by how much depends on them.
func rankOfLabel(key string) int {
	switch {
	case runstatus.IsRestoreLabel(key):
		return 0
	case strings.HasPrefix(key, v1alpha1.GroupVersion.Group+"/"):
		return 1
	case runstatus.IsTrackingKey(key):
		return 2
	}
	return 3
}

// hasRunMeta reports whether the metadata of a Run has nothing that the cache drops.
func hasRunMeta(run *v1alpha1.Run) bool {
	return run.ManagedFields == nil && run.Finalizers == nil && run.GenerateName == "" && len(run.Labels) <= maxLabels &&
		hasReducedOwners(run.OwnerReferences) && maps.Equal(run.Annotations, annotationsOfRun(run.Annotations))
}
