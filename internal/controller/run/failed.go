package run

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/apierr"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// reportFailure reports a step that failed. What the API server refuses is asked for
// again after a while; a failure that may pass is an error, so that the queue backs
// off. A conflict says nothing: what was seen is old.
func (r *Reconciler) reportFailure(ctx context.Context, w world, p plan, err error) (ctrl.Result, error) {
	if apierr.IsConflict(err) || ctx.Err() != nil {
		return ctrl.Result{}, err
	}
	next := failurePlan(w, p, err)
	if said := next.message + next.problem; apierr.IsRefusal(err) && !strings.Contains(messageOf(w.run), said) {
		log.FromContext(ctx).Info("The API server refused a request", "error", err.Error())
	}
	if reported := r.report(ctx, w, next, statusOf(w, next, "")); reported != nil {
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
// what that was to record is recorded: it is decided again.
func failurePlan(w world, p plan, err error) plan {
	text := task.Cut(apierr.Describe(err), runstatus.MaxCause)
	var next plan
	switch {
	case runstatus.IsFinished(w.run):
		next = unchanged(w.run, plan{problem: text})
	case p.settles():
		next = plan{reason: p.reason, message: p.message, outcome: p.outcome, lastWord: p.lastWord, problem: text}
	case startsAttempt(w):
		next = cannotStart(w, p, text, err)
	default:
		next = plan{reason: reasonWhile(w, p), message: text}
	}
	next.wake = sooner(sooner(next.wake, p.wake), retryIn(w))
	return next
}

// startsAttempt reports whether a Run waits for a pod of its current attempt, or for
// its first attempt.
func startsAttempt(w world) bool {
	return w.run.Status.Attempt == nil || w.run.Status.Attempt.PodUID == ""
}

// cannotStart waits until an attempt can start, limits.pending at most. A failure
// that may pass does not end a Run the first time that it is seen: the Run may have
// waited for something else until then.
func cannotStart(w world, p plan, text string, err error) plan {
	if apierr.IsRefusal(err) {
		return patiently(w, v1alpha1.ReasonPending, text)
	}
	reason := reasonWhile(w, p)
	if runstatus.TrimDeadline(messageOf(w.run)) == text {
		return patiently(w, reason, text)
	}
	return waiting(reason, untilPending(w, text), 0)
}

// reasonWhile is the reason of a Run while a step of it fails. The message of one
// that misses a Secret is repeated until its runner starts (beginning), which another
// message must not be.
func reasonWhile(w world, p plan) string {
	switch reason := cmp.Or(p.reason, reasonOf(w.run)); reason {
	case v1alpha1.ReasonSecretMissing:
		return v1alpha1.ReasonStarting
	default:
		return reason
	}
}

// retryIn is how soon a refused request is sent again: ever less often.
func retryIn(w world) time.Duration {
	since := w.run.CreationTimestamp.Time
	if a := w.run.Status.Attempt; a != nil {
		since = a.StartedAt.Time
	}
	if runstatus.IsFinished(w.run) {
		since = w.run.Status.CompletionTime.Time
	}
	return max(minRefusedWait, min(w.now.Sub(since), maxRefusedWait))
}
