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

// facts are the results of applying a plan. decide runs again with them.
type facts struct {
	notOwned error // why the Run could not be made the owner
}

// apply executes a plan and returns the results.
func (r *Reconciler) apply(ctx context.Context, s state, p plan) facts {
	if !p.own {
		return facts{}
	}
	return facts{notOwned: r.adopt(ctx, s)}
}

// adopt makes the Run the owner, so that the Decision is deleted with it.
func (r *Reconciler) adopt(ctx context.Context, s state) error {
	patch, err := json.Marshal(addOwner(s.decision, metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: s.run.Name, UID: s.run.UID,
	}))
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	if err := r.client.Patch(ctx, s.decision.DeepCopy(), client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("making Run %s the owner of Decision %s: %w", s.run.Name, s.decision.Name, err))
	}
	return nil
}

// addOwner returns a JSON patch that adds an owner to an object. It does not repeat existing owners, because the cache
// may have only some of them; but if an object has any, the cache has at least one.
func addOwner(s metav1.Object, owner metav1.OwnerReference) []statuspatch.Op {
	const path = "/metadata/ownerReferences"
	locked := statuspatch.Op{Op: "add", Path: "/metadata/resourceVersion", Value: s.GetResourceVersion()}
	if len(s.GetOwnerReferences()) == 0 {
		return []statuspatch.Op{locked, {Op: "add", Path: path, Value: []metav1.OwnerReference{owner}}}
	}
	return []statuspatch.Op{locked, {Op: "add", Path: path + "/-", Value: owner}}
}
