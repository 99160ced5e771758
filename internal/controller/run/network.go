package run

import (
	"context"

	"github.com/deckhand-dev/deckhand/internal/egress"
	"github.com/deckhand-dev/deckhand/internal/runnerpod"
)

// networkPolicies makes the NetworkPolicy of a class, and keeps it until it is released.
type networkPolicies interface {
	Hold(ctx context.Context, namespace string, c egress.Class) (release func(), err error)
}

// holdNetworkPolicy makes the NetworkPolicy of a pod before the pod, and keeps it until it is
// released.
func (r *Reconciler) holdNetworkPolicy(ctx context.Context, s state) (release func(), err error) {
	if r.networkPolicies == nil {
		return func() {}, nil
	}
	return r.networkPolicies.Hold(ctx, s.run.Namespace, runnerpod.EgressClass(podInputOf(s, s.attempt())))
}
