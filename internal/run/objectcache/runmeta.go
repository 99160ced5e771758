package objectcache

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// runAnnotations are the annotations of a Run whose values are read.
var runAnnotations = []string{
	v1alpha1.AnnotationRevisionHash, v1alpha1.AnnotationVolumeClaim, v1alpha1.AnnotationDigest, v1alpha1.AnnotationRootRun,
	v1alpha1.AnnotationPaused, v1alpha1.AnnotationScheduledAt,
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

// annotationsOfRun returns the annotations of a Run that are read, and one for each reason for which
// their presence counts: that a GitOps tool tracks the Run, that a backup tool created it.
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

// firstKey returns the first of the keys for which is returns true; empty: there is none.
func firstKey(all map[string]string, is func(key, value string) bool) string {
	first := ""
	for key, value := range all {
		if is(key, value) && (first == "" || key < first) {
			first = key
		}
	}
	return first
}

// runLabels returns at most maxLabels labels: those that the operator reads first.
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

// hasRunMeta reports whether there is nothing that the cache drops of the metadata of a Run.
func hasRunMeta(run *v1alpha1.Run) bool {
	return run.ManagedFields == nil && run.Finalizers == nil && run.GenerateName == "" && len(run.Labels) <= maxLabels &&
		hasReducedOwners(run.OwnerReferences) && maps.Equal(run.Annotations, annotationsOfRun(run.Annotations))
}
