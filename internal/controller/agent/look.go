package agent

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gc"
	"github.com/deckhand-dev/deckhand/internal/refs"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
)

// A world is everything that one decision may depend on.
type world struct {
	agent    *v1alpha1.Agent  // nil: gone
	objects  snapshot.Objects // what it may reach
	versions gc.Revisions
	now      time.Time
}

func (r *Reconciler) look(ctx context.Context, key client.ObjectKey) (world, error) {
	w := world{now: r.now()}
	var agent v1alpha1.Agent
	switch err := r.client.Get(ctx, key, &agent); {
	case err == nil:
		w.agent = &agent
	case !apierrors.IsNotFound(err):
		return w, err
	}
	if w.agent != nil {
		var err error
		if w.objects, err = refs.OfAgent(ctx, r.client, &agent); err != nil {
			return w, err
		}
	}
	var err error
	w.versions, err = gc.ListRevisions(ctx, r.client, key.Namespace, client.MatchingLabels{v1alpha1.LabelAgent: snapshot.Label(key.Name)})
	return w, err
}
