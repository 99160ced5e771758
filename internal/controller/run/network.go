package run

import (
	"context"

	"github.com/deckhand-dev/deckhand/internal/egress"
	"github.com/deckhand-dev/deckhand/internal/runnerpod"
)

// A fencer makes the NetworkPolicy of a class, and keeps it until it is released.
type fencer interface {
	Hold(ctx context.Context, namespace string, c egress.Class) (release func(), err error)
}

// fence makes the NetworkPolicy of a pod before the pod, and keeps it until it is
// released.
func (r *Reconciler) fence(ctx context.Context, w world) (release func(), err error) {
	if r.fencer == nil {
		return func() {}, nil
	}
	return r.fencer.Hold(ctx, w.run.Namespace, runnerpod.EgressClass(podInputOf(w, w.attempt())))
}
