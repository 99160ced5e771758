package agent

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/internal/statuspatch"
)

// report writes the status once, only if it changed.
func (r *Reconciler) report(ctx context.Context, w world, p plan) error {
	if w.agent == nil {
		return nil
	}
	want := *w.agent.Status.DeepCopy()
	want.ObservedGeneration = w.agent.Generation
	want.Conditions = statuspatch.MergeConditions(want.Conditions, metav1.NewTime(w.now), w.agent.Generation, p.conditions...)
	return statuspatch.Apply(ctx, r.client, w.agent, w.agent.Status, want)
}
