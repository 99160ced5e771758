package workflowrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/apierr"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// refusedInterval is how soon a refused request is sent again.
const refusedInterval = 15 * time.Second

// reportFailure reports a step that failed. What the API server refuses is asked for
// again after a while; a failure that may pass is an error, so that the queue backs
// off. A conflict says nothing: what was seen is old.
func (r *Reconciler) reportFailure(ctx context.Context, w world, p plan, err error) (ctrl.Result, error) {
	if apierr.IsConflict(err) || ctx.Err() != nil {
		return ctrl.Result{}, err
	}
	next := failurePlan(w, p, err)
	if reported := r.report(ctx, w, next); reported != nil {
		return ctrl.Result{}, errors.Join(err, reported)
	}
	if !apierr.IsRefusal(err) {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: next.wake}, nil
}

// reportUnobserved reports that the API server refuses to show what a Run depends on.
func (r *Reconciler) reportUnobserved(ctx context.Context, w world, err error) (ctrl.Result, error) {
	if !apierr.IsRefusal(err) {
		return ctrl.Result{}, err
	}
	return r.reportFailure(ctx, w, plan{}, err)
}

// failurePlan is the plan that reports why another one could not be carried out. None of
// what that was to record is recorded, unless it ends the Run: it is decided again.
func failurePlan(w world, p plan, err error) plan {
	text := task.Cut(apierr.Describe(err), runstatus.MaxCause)
	next := plan{Outcome: runstatus.OutcomeOf(w.run.Status), wake: sooner(p.wake, refusedInterval)}
	switch {
	case !active(w):
		next.Problem = text
	case p.Settles():
		next.Outcome, next.progress = p.Outcome, p.progress
		next.Problem = text
	case !w.begun() && apierr.IsRefusal(err):
		return cannotBegin(w, next, text)
	default:
		next.Message = text
	}
	return next
}

// cannotBegin waits until a Run can begin, limits.pending at most.
func cannotBegin(w world, p plan, text string) plan {
	limit := pendingLimit(w)
	until := pendingSince(w).Add(limit)
	if !until.After(w.now) {
		return failure(v1alpha1.ReasonPendingTimeout, fmt.Sprintf("Timed out after %s (limits.pending): %s. Then create a new Run", limit, text))
	}
	p.Reason, p.Message, p.wake = v1alpha1.ReasonPending, runstatus.WithDeadline(text, until, limit, "limits.pending"), sooner(p.wake, until.Sub(w.now))
	return p
}
