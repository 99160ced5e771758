package workflowrun

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// parentInterval is how often the controller checks whether the parent has ended.
const parentInterval = time.Minute

// isParentActive reports whether the parent of a finished Run with a TTL is active: it may
// still read the result.
func (r *Reconciler) isParentActive(ctx context.Context, of *v1alpha1.Run) (bool, error) {
	owner := metav1.GetControllerOf(of)
	if of.Spec.TTLSecondsAfterFinished == nil || owner == nil || owner.Kind != "Run" {
		return false, nil
	}
	var above v1alpha1.Run
	err := r.client.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: owner.Name}, &above)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("getting Run %s: %w", owner.Name, err)
	}
	return above.UID == owner.UID && above.Status.CompletionTime == nil, nil
}
