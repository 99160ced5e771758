package objectcache

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/egress"
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
	kept.Annotations = chosen(claim.Annotations, v1alpha1.AnnotationRetain, v1alpha1.AnnotationRetention)
	kept.Spec.AccessModes = claim.Spec.AccessModes[:min(len(claim.Spec.AccessModes), maxModes)]
	kept.Status.Phase = claim.Status.Phase
	return kept, nil
}

// NetworkPolicy returns what the cache keeps of a NetworkPolicy: for which pods it is, and digests of
// its spec.
func NetworkPolicy(o any) (any, error) {
	policy, is := o.(*networkingv1.NetworkPolicy)
	if !is {
		return o, nil
	}
	kept := &networkingv1.NetworkPolicy{ObjectMeta: identity(&policy.ObjectMeta), Spec: egress.Digest(policy.Spec)}
	kept.Labels = chosen(policy.Labels, v1alpha1.LabelEgress)
	return kept, nil
}
