package run

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/denial"
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

// fence makes the NetworkPolicy of a pod before the pod. Where it cannot, the plan
// says what follows.
func (r *Reconciler) fence(ctx context.Context, w world) (release func(), instead *plan, err error) {
	if r.fencer == nil {
		return func() {}, nil, nil
	}
	release, err = r.fencer.Hold(ctx, w.run.Namespace, recipeOf(w).egress())
	switch {
	case err == nil:
		return release, nil, nil
	case !denial.Is(err) || apierrors.IsForbidden(err):
		return nil, nil, err // the server's fault, or the operator's own rights
	}
	p := retriedCreate(w, v1alpha1.ReasonPending, fmt.Sprintf("The cluster does not take the pod's NetworkPolicy: %v", err))
	return nil, &p, nil
}
