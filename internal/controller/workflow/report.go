package workflow

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/internal/statuspatch"
)

// report writes the status once, only if it changed.
func (r *Reconciler) report(ctx context.Context, w world, p plan) error {
	if w.workflow == nil {
		return nil
	}
	want := *w.workflow.Status.DeepCopy()
	want.ObservedGeneration = w.workflow.Generation
	want.Nodes = p.nodes
	want.Conditions = statuspatch.MergeConditions(want.Conditions, metav1.NewTime(w.now), w.workflow.Generation, statuspatch.ReadyConditions(*p.ready)...)
	return statuspatch.Apply(ctx, r.client, w.workflow, w.workflow.Status, want)
}
