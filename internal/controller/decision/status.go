package decision

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/statuspatch"
)

func statusOf(w world, applied metav1.Condition) v1alpha1.DecisionStatus {
	d := w.decision
	return v1alpha1.DecisionStatus{
		ObservedGeneration: d.Generation,
		Conditions:         statuspatch.MergeConditions(d.Status.Conditions, metav1.NewTime(w.now), d.Generation, statuspatch.WithProgress(applied, applied.Status == metav1.ConditionUnknown)...),
	}
}

// report writes the status once, only if it changed. A refusal is an event too: it is
// final, so it is reported once.
func (r *Reconciler) report(ctx context.Context, w world, want v1alpha1.DecisionStatus) error {
	if err := statuspatch.Apply(ctx, r.client, w.decision, w.decision.Status, want); err != nil {
		return err
	}
	c := meta.FindStatusCondition(want.Conditions, v1alpha1.ConditionApplied)
	if c == nil || c.Status != metav1.ConditionFalse {
		return nil
	}
	var related runtime.Object
	if w.run != nil {
		related = w.run
	}
	r.events.Eventf(w.decision, related, corev1.EventTypeWarning, c.Reason, "Refuse", "%s", c.Message)
	return nil
}
