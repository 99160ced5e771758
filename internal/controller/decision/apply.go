package decision

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// apply makes the Run the owner, so that the Decision is deleted with it. The error is a fact
// for decide.
func (r *Reconciler) apply(ctx context.Context, o observed, p plan) error {
	if !p.own {
		return nil
	}
	owned := o.decision.DeepCopy()
	owned.OwnerReferences = append(owned.OwnerReferences, metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: o.run.Name, UID: o.run.UID,
	})
	patch := client.MergeFromWithOptions(o.decision.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, owned, patch); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("making Run %s the owner of Decision %s: %w", o.run.Name, o.decision.Name, err))
	}
	return nil
}
