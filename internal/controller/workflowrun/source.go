package workflowrun

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/continuing"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// observeSource reads the Run whose result a Run has, or the Run that it retries, with its child Runs. After the start,
// another Run of that name does not count.
func (r *Reconciler) observeSource(ctx context.Context, s *state) (err error) {
	if s.run.Spec.ContinueFrom == nil {
		return nil
	}
	if children.ReuseOf(s.run) != "" {
		s.reusedRun, err = children.ReusedRun(ctx, r.client, s.run)
		return err
	}
	s.source = &source{}
	// The API server may know of a Run whose child Runs the cache does not have.
	from, err := continuing.Reader{Cache: r.client, Live: r.client}.Source(ctx, s.run)
	before := s.run.Status.ContinuedFrom
	if err != nil || from.Run == nil || s.hasStarted() && (before == nil || before.UID != string(from.Run.UID)) {
		return err
	}
	if isOld, err := r.isOlderSource(ctx, s.run, from.Run); isOld || err != nil {
		return err // the Run waits for the cache
	}
	s.source.run, s.source.circle, s.source.children = from.Run, from.Circle, map[childKey]*v1alpha1.Run{}
	all, err := r.observeChildren(ctx, from.Run)
	for _, c := range all {
		s.source.children[keyOf(c)] = c
	}
	return err
}

// isOlderSource reports whether a source from the cache was deleted, and the API server has the Run that is named by its
// UID.
func (r *Reconciler) isOlderSource(ctx context.Context, run, cached *v1alpha1.Run) (bool, error) {
	if continuing.IsNamed(run, cached) {
		return false, nil
	}
	var live v1alpha1.Run
	found, err := apierr.Found(r.live.Get(ctx, client.ObjectKeyFromObject(cached), &live))
	if err != nil {
		return false, fmt.Errorf("getting Run %s: %w", cached.Name, err)
	}
	return found && continuing.IsNamed(run, &live), nil
}

// retrying returns the Runs that wait for a Run or, if it is a child Run of a workflow, for its parent.
func (r *Reconciler) retrying(ctx context.Context, o client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, name := range []string{o.GetName(), o.GetLabels()[v1alpha1.LabelWorkflowRun]} {
		if name == "" {
			continue
		}
		runs, err := continuing.Unfinished(ctx, r.client, client.ObjectKey{Namespace: o.GetNamespace(), Name: name})
		if err != nil {
			return nil // the cache is closing
		}
		for i := range runs {
			if unbegunByWorkflow(&runs[i]) != nil {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&runs[i])})
			}
		}
	}
	return out
}

// sourceChanged passes on events of a Run that another can wait for: it appeared, ended or was deleted.
var sourceChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, isRun := e.ObjectOld.(*v1alpha1.Run)
		is, alsoRun := e.ObjectNew.(*v1alpha1.Run)
		return isRun && alsoRun && runstatus.IsFinished(was) != runstatus.IsFinished(is)
	},
}
