package run

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
)

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

// expiresAfter returns how long a finished Run stays by its TTL, which does not run while its
// parent is active; false: the Run is not deleted.
func expiresAfter(s state) (left time.Duration, goes bool) {
	if s.parentIsActive() {
		return 0, false
	}
	left, goes = runstatus.TTLRemaining(s.run, s.now)
	if age, known := s.sinceParentEnded(); known && goes {
		left = max(left, time.Duration(*s.run.Spec.TTLSecondsAfterFinished)*time.Second-age)
	}
	return left, goes
}

// parentIsActive reports whether the parent of the Run is active: it may still read the
// result.
func (s state) parentIsActive() bool {
	return len(s.ancestors) > 0 && s.ancestors[0].Run != nil && s.ancestors[0].Run.Status.CompletionTime == nil
}

// sinceParentEnded returns how long ago the parent ended; false: that is not known.
func (s state) sinceParentEnded() (age time.Duration, ok bool) {
	if len(s.ancestors) == 0 || s.ancestors[0].Run == nil || s.ancestors[0].Run.Status.CompletionTime == nil {
		return 0, false
	}
	return s.now.Sub(s.ancestors[0].Run.Status.CompletionTime.Time), true
}
