package run

import (
	"context"

	"github.com/deckhand-dev/deckhand/internal/egress"
)

// A fencer makes the NetworkPolicy of a class, and keeps it until it is released.
type fencer interface {
	Hold(ctx context.Context, namespace string, c egress.Class) (release func(), err error)
}

// egress is what the pod may reach.
func (r recipe) egress() egress.Class {
	var urls []string
	if p := r.supply.Proxy; p != nil {
		urls = append(urls, p.HTTP, p.HTTPS)
	}
	return egress.Of(r.version.Snapshot, r.run.Namespace, urls...)
}

// fence makes the NetworkPolicy of a pod before the pod, and keeps it until it is
// released.
func (r *Reconciler) fence(ctx context.Context, w world) (release func(), err error) {
	if r.fencer == nil {
		return func() {}, nil
	}
	return r.fencer.Hold(ctx, w.run.Namespace, recipeOf(w).egress())
}
