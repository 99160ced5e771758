package decision

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/condition"
	"github.com/deckhand-dev/deckhand/internal/statuspatch"
)

func statusOf(w world, applied metav1.Condition) v1alpha1.DecisionStatus {
	d := w.decision
	return v1alpha1.DecisionStatus{
		ObservedGeneration: d.Generation,
		Conditions:         condition.Merge(d.Status.Conditions, metav1.NewTime(w.now), d.Generation, applied),
	}
}

// report writes the status once, only if it changed.
func (r *Reconciler) report(ctx context.Context, w world, want v1alpha1.DecisionStatus) error {
	return statuspatch.Apply(ctx, r.client, w.decision, w.decision.Status, want)
}
