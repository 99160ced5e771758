package decision

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
)

// state is everything that one decision may depend on.
type state struct {
	facts
	decision *v1alpha1.Decision
	run      *v1alpha1.Run // nil: it does not exist
	taken    []string      // the names of the Decisions on the Run, if this one is refused
	adopts   bool          // the Decision has no owner, and the Run can become it
	now      time.Time
}

// observe reads everything that the plan for a Decision depends on.
func (r *Reconciler) observe(ctx context.Context, d *v1alpha1.Decision) (state, error) {
	s, err := r.observeRun(ctx, d)
	if err != nil || s.run == nil || len(decisions.Owners(d)) > 0 {
		return s, err // a Decision of other owners is for an earlier Run of that name
	}
	s.adopts, err = r.isLive(ctx, s.run)
	return s, err
}

// isLive reports whether the API server has the Run and it is not being deleted. The cache may be older: when a Run is
// deleted and its dependents are to stay, the garbage collector removes the owner, which must not be added again.
func (r *Reconciler) isLive(ctx context.Context, run *v1alpha1.Run) (bool, error) {
	var live v1alpha1.Run
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(run), &live); err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("getting Run %s: %w", run.Name, err))
	}
	return live.UID == run.UID && live.DeletionTimestamp.IsZero(), nil
}

// observeRun reads the Run. If the Decision would be refused by the cached state, it reads the Run from the API server:
// users answer requests that the cache may not have yet.
func (r *Reconciler) observeRun(ctx context.Context, d *v1alpha1.Decision) (state, error) {
	s := state{decision: d, now: r.now()}
	for _, reader := range []client.Reader{r.client, r.live} {
		var run v1alpha1.Run
		err := reader.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: d.Spec.Run}, &run)
		switch {
		case err == nil:
			run.Status.Progress = untrusted.Progress(run.Status.Progress)
			s.run = &run
		case apierrors.IsNotFound(err):
			s.run = nil
		default:
			return s, fmt.Errorf("getting Run %s: %w", d.Spec.Run, err)
		}
		if decisions.Evaluate(s.run, d).Applied != metav1.ConditionFalse {
			return s, nil
		}
	}
	if s.run == nil {
		return s, nil
	}
	others, err := decisions.List(ctx, r.client, s.run)
	for i := range others {
		s.taken = append(s.taken, others[i].Name)
	}
	return s, err
}
