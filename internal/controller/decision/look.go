package decision

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/decisions"
	"github.com/deckhand-dev/deckhand/internal/untrusted"
)

// A world is everything that one decision may depend on.
type world struct {
	decision *v1alpha1.Decision
	run      *v1alpha1.Run // nil: there is none
	taken    []string      // the names of the Decisions on the Run, where this one is refused
	now      time.Time
}

// look reads the Run, from the API server itself where the cache would have the
// Decision refused: people answer what they see, and may see it first.
func (r *Reconciler) look(ctx context.Context, d *v1alpha1.Decision) (world, error) {
	w := world{decision: d, now: r.now()}
	for _, reader := range []client.Reader{r.client, r.live} {
		var run v1alpha1.Run
		err := reader.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: d.Spec.Run}, &run)
		switch {
		case err == nil:
			run.Status.Progress = untrusted.Progress(run.Status.Progress)
			w.run = &run
		case apierrors.IsNotFound(err):
			w.run = nil
		default:
			return w, fmt.Errorf("getting Run %s: %w", d.Spec.Run, err)
		}
		if decisions.Evaluate(w.run, d).Applied != metav1.ConditionFalse {
			return w, nil
		}
	}
	if w.run == nil {
		return w, nil
	}
	others, err := decisions.List(ctx, r.client, w.run)
	for i := range others {
		w.taken = append(w.taken, others[i].Name)
	}
	return w, err
}
