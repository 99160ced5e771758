package run

import (
	"context"

	"github.com/deckhand-dev/deckhand/internal/egress"
)

// A fencer makes the NetworkPolicy of a class, and keeps it until it is released.
type fencer interface {
	Hold(ctx context.Context, namespace string, c egress.Class) (release func(), err error)
}

// egressClass returns what a pod may reach.
func egressClass(in podInput) egress.Class {
	var urls []string
	if p := newPodBuilder(in).supply.Proxy; p != nil {
		urls = append(urls, p.HTTP, p.HTTPS)
	}
	return egress.Of(in.Revision.Snapshot, in.Run.Namespace, urls...)
}

// fence makes the NetworkPolicy of a pod before the pod, and keeps it until it is
// released.
func (r *Reconciler) fence(ctx context.Context, w world) (release func(), err error) {
	if r.fencer == nil {
		return func() {}, nil
	}
	return r.fencer.Hold(ctx, w.run.Namespace, egressClass(podInputOf(w, w.attempt())))
}
