package decision

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/statuspatch"
)

func statusOf(s state, applied metav1.Condition) v1alpha1.DecisionStatus {
	d := s.decision
	return v1alpha1.DecisionStatus{
		ObservedGeneration: d.Generation,
		Conditions:         statuspatch.MergeConditions(d.Status.Conditions, metav1.NewTime(s.now), d.Generation, statuspatch.WithProgress(applied, applied.Status == metav1.ConditionUnknown)...),
	}
}

// updateStatus writes the status once, only if it changed. A refusal also emits an event, once, because it is final.
func (r *Reconciler) updateStatus(ctx context.Context, s state, p plan) error {
	want := statusOf(s, p.applied)
	if err := statuspatch.Apply(ctx, r.client, s.decision, s.decision.Status, want); err != nil {
		return err
	}
	c := meta.FindStatusCondition(want.Conditions, v1alpha1.ConditionApplied)
	if c == nil || c.Status != metav1.ConditionFalse {
		return nil
	}
	var related runtime.Object
	if s.run != nil {
		related = s.run
	}
	r.events.Eventf(s.decision, related, corev1.EventTypeWarning, c.Reason, "Refuse", "%s", c.Message)
	return nil
}
