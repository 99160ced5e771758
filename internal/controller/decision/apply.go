package decision

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/statuspatch"
)

// apply makes the Run the owner, so that the Decision is deleted with it. The error is a fact
// for decide.
func (r *Reconciler) apply(ctx context.Context, o observed, p plan) error {
	if !p.own {
		return nil
	}
	patch, err := json.Marshal(addOwner(o.decision, metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: o.run.Name, UID: o.run.UID,
	}))
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	if err := r.client.Patch(ctx, o.decision.DeepCopy(), client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("making Run %s the owner of Decision %s: %w", o.run.Name, o.decision.Name, err))
	}
	return nil
}

// addOwner returns a JSON patch that adds an owner to an object. It does not repeat existing owners, because the cache
// may have only some of them; but if an object has any, the cache has at least one.
func addOwner(o metav1.Object, owner metav1.OwnerReference) []statuspatch.Op {
	const path = "/metadata/ownerReferences"
	locked := statuspatch.Op{Op: "add", Path: "/metadata/resourceVersion", Value: o.GetResourceVersion()}
	if len(o.GetOwnerReferences()) == 0 {
		return []statuspatch.Op{locked, {Op: "add", Path: path, Value: []metav1.OwnerReference{owner}}}
	}
	return []statuspatch.Op{locked, {Op: "add", Path: path + "/-", Value: owner}}
}
