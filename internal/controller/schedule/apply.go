package schedule

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/children"
)

// facts are the results of applying a plan. decide runs again with them.
type facts struct {
	created    bool  // the Run that is due
	nameTaken  bool  // a Run that is not of the Schedule has the name of the one that is due
	notCreated error // why the Run that is due could not be created
	failed     error // why other requests failed, or the creation did without being refused
}

// apply executes a plan and returns the results.
func (r *Reconciler) apply(ctx context.Context, s state, p plan) facts {
	var f facts
	var failed []error
	for _, run := range p.stop {
		if change, needed := children.Stop(run); needed {
			failed = append(failed, children.SetStates(ctx, r.client, []children.StateChange{change}))
		}
	}
	for _, run := range p.prune {
		failed = append(failed, apierr.Delete(ctx, r.client, run, "Run", client.PropagationPolicy(metav1.DeletePropagationBackground)))
	}
	if p.create != nil {
		f.nameTaken, f.notCreated = r.create(ctx, s, p)
		if f.created = f.notCreated == nil && !f.nameTaken; !apierr.IsRefusal(f.notCreated) {
			failed = append(failed, f.notCreated)
		}
	}
	f.failed = errors.Join(failed...)
	return f
}

// create creates the Run that is due. If a Run with the name exists, it was created before a restart of the operator;
// if the Schedule does not own it, the name is taken.
func (r *Reconciler) create(ctx context.Context, s state, p plan) (taken bool, err error) {
	// By an old status, a Run that was created and deleted would be created again.
	if err := apierr.CheckUnchanged(ctx, r.live, "Schedule", s.schedule); err != nil {
		return false, err
	}
	err = r.client.Create(ctx, p.create)
	switch {
	case apierrors.IsAlreadyExists(err):
		return r.isTaken(ctx, s.schedule, p)
	case err != nil:
		return false, fmt.Errorf("creating Run %s: %w", p.create.Name, err)
	}
	return false, nil
}

// isTaken reports whether the Run with the name of the due one belongs to another owner. If the Run no longer exists,
// it returns a conflict.
func (r *Reconciler) isTaken(ctx context.Context, schedule *v1alpha1.Schedule, p plan) (bool, error) {
	run, found, err := r.find(ctx, schedule, p.due)
	if err == nil && !found {
		err = apierr.Changed("Run", p.create.Name)
	}
	return err == nil && !isOwned(schedule, run), err
}
