package workflow

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/internal/condition"
	"github.com/deckhand-dev/deckhand/internal/statuspatch"
)

// act removes versions that nothing needs.
func (r *Reconciler) act(ctx context.Context, p plan) error {
	for i := range p.remove {
		uid := p.remove[i].UID
		err := r.client.Delete(ctx, &p.remove[i], client.Preconditions{UID: &uid})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting ConfigMap %s: %w", p.remove[i].Name, err)
		}
	}
	return nil
}

// report writes the status once, only if it changed.
func (r *Reconciler) report(ctx context.Context, w world, p plan) error {
	if w.workflow == nil {
		return nil
	}
	want := *w.workflow.Status.DeepCopy()
	want.ObservedGeneration = w.workflow.Generation
	want.Nodes = p.nodes
	want.Conditions = condition.Merge(want.Conditions, metav1.NewTime(w.now), w.workflow.Generation, *p.ready)
	return statuspatch.Apply(ctx, r.client, w.workflow, w.workflow.Status, want)
}
