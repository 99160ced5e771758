package run

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/children"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
)

// maxLineage is how many Runs above one are looked for: one more than there may
// be.
const maxLineage = 6

// An ancestor is a Run that another is a part of.
type ancestor struct {
	uid types.UID
	run *v1alpha1.Run // nil: gone
}

// lineage are the Runs that one is a part of, the nearest first.
func (r *Reconciler) lineage(ctx context.Context, run *v1alpha1.Run) ([]ancestor, error) {
	var out []ancestor
	for run != nil && len(out) < maxLineage {
		owner := children.ParentOf(run)
		if owner == nil {
			return out, nil
		}
		next := ancestor{uid: owner.UID}
		var found v1alpha1.Run
		err := r.client.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: owner.Name}, &found)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("getting Run %s: %w", owner.Name, err)
		case found.UID == owner.UID:
			next.run = &found
		}
		out, run = append(out, next), next.run
	}
	return out, nil
}

// childrenOf are the finished Runs that are a part of one and have a TTL.
func (r *Reconciler) childrenOf(ctx context.Context, parent client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, label := range []string{v1alpha1.LabelParentRun, v1alpha1.LabelWorkflowRun} {
		var list v1alpha1.RunList
		if r.client.List(ctx, &list, client.InNamespace(parent.GetNamespace()), client.MatchingLabels{label: parent.GetName()}, client.UnsafeDisableDeepCopy) != nil {
			return nil // the cache is closing
		}
		for i := range list.Items {
			if child := &list.Items[i]; runstatus.IsFinished(child) && child.Spec.TTLSecondsAfterFinished != nil {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(child)})
			}
		}
	}
	return out
}

// staysYet is how long a finished Run stays by its TTL, which does not run while
// the Run that it is a part of is active; false: until somebody deletes it.
func staysYet(w world) (left time.Duration, goes bool) {
	if w.goesOnAbove() {
		return 0, false
	}
	left, goes = runstatus.TTLRemaining(w.run, w.now)
	if age, known := w.sinceAbove(); known && goes {
		left = max(left, time.Duration(*w.run.Spec.TTLSecondsAfterFinished)*time.Second-age)
	}
	return left, goes
}

// goesOnAbove says whether the Run that this one is a part of is active: what it
// found may still be read.
func (w world) goesOnAbove() bool {
	return len(w.above) > 0 && w.above[0].run != nil && w.above[0].run.Status.CompletionTime == nil
}

// sinceAbove is how long the Run that this one is a part of is final; ok is false
// where there is none, or nobody knows.
func (w world) sinceAbove() (age time.Duration, ok bool) {
	if len(w.above) == 0 || w.above[0].run == nil || w.above[0].run.Status.CompletionTime == nil {
		return 0, false
	}
	return w.now.Sub(w.above[0].run.Status.CompletionTime.Time), true
}
