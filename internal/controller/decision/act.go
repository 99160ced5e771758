package decision

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/decisions"
)

// act makes the Run the owner, so that the Decision goes when it goes. One that
// another Run of that name owns is about to go with that.
func (r *Reconciler) act(ctx context.Context, w world) error {
	if w.run == nil || decisions.OwnerUID(w.decision) != "" {
		return nil
	}
	owned := w.decision.DeepCopy()
	owned.OwnerReferences = append(owned.OwnerReferences, metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: w.run.Name, UID: w.run.UID,
	})
	patch := client.MergeFromWithOptions(w.decision.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, owned, patch); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("making Run %s the owner of Decision %s: %w", w.run.Name, w.decision.Name, err))
	}
	return nil
}
