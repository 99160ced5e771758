package objectcache

import (
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/egress"
)

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
