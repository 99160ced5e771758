package run

import (
	"context"

	"github.com/deckhand-dev/deckhand/internal/egress"
	"github.com/deckhand-dev/deckhand/internal/runnerpod"
)

// networkPolicies creates the NetworkPolicy of a class, and keeps it until it is released.
type networkPolicies interface {
	Acquire(ctx context.Context, namespace string, c egress.Class) (release func(), err error)
}

// acquireNetworkPolicy creates the NetworkPolicy of a pod before the pod, and keeps it until it is
// released.
func (r *Reconciler) acquireNetworkPolicy(ctx context.Context, s state) (release func(), err error) {
	if r.networkPolicies == nil {
		return func() {}, nil
	}
	return r.networkPolicies.Acquire(ctx, s.run.Namespace, runnerpod.EgressClass(podInputOf(s, s.attempt())))
}
