package objectcache

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// maxModes is how many access modes there are.
const maxModes = 4

// VolumeClaim returns what the cache keeps of a PersistentVolumeClaim: whose it is, how long it
// is kept, its access modes and its phase.
func VolumeClaim(o any) (any, error) {
	claim, is := o.(*corev1.PersistentVolumeClaim)
	if !is {
		return o, nil
	}
	kept := &corev1.PersistentVolumeClaim{ObjectMeta: identity(&claim.ObjectMeta)}
	kept.OwnerReferences = reducedOwners(claim.OwnerReferences)
	kept.Labels = chosen(claim.Labels, v1alpha1.LabelRun)
	kept.Annotations = chosen(claim.Annotations, v1alpha1.AnnotationRetain, v1alpha1.AnnotationRetention, v1alpha1.AnnotationFileOwner)
	kept.Spec.AccessModes = claim.Spec.AccessModes[:min(len(claim.Spec.AccessModes), maxModes)]
	kept.Status.Phase = claim.Status.Phase
	return kept, nil
}
