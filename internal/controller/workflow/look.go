package workflow

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gc"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// A world is everything that one decision may depend on.
type world struct {
	workflow *v1alpha1.Workflow // nil: gone
	objects  workflow.Objects   // what it may reach
	versions gc.Revisions
	now      time.Time
}

func (r *Reconciler) look(ctx context.Context, key client.ObjectKey) (world, error) {
	w := world{now: r.now()}
	var found v1alpha1.Workflow
	switch err := r.client.Get(ctx, key, &found); {
	case err == nil:
		w.workflow = &found
	case !apierrors.IsNotFound(err):
		return w, err
	}
	if w.workflow != nil {
		var err error
		if w.objects, err = workflow.From(ctx, r.client, w.workflow); err != nil {
			return w, err
		}
	}
	var err error
	w.versions, err = gc.ListRevisions(ctx, r.client, key.Namespace, client.MatchingLabels{v1alpha1.LabelWorkflow: snapshot.Label(key.Name)})
	return w, err
}
