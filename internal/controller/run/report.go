package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/apierr"
	"github.com/deckhand-dev/deckhand/internal/children"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
	"github.com/deckhand-dev/deckhand/internal/statuspatch"
	"github.com/deckhand-dev/deckhand/internal/template"
	"github.com/deckhand-dev/deckhand/internal/untrusted"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// updateStatus writes the status, and returns when to look again. What the API server refused
// is requested again after a while. A failure that may pass is an error, so that the queue
// backs off. After a conflict nothing is written: what was observed is old.
func (r *Reconciler) updateStatus(ctx context.Context, s state, p plan) (ctrl.Result, error) {
	var failure error
	if f := s.facts.failure; f != nil {
		failure = f.err
	}
	if failure != nil && (apierr.IsConflict(failure) || ctx.Err() != nil) {
		return ctrl.Result{}, failure
	}
	if apierr.IsRefusal(failure) && !strings.Contains(messageOf(s.run), p.message+p.problem) {
		log.FromContext(ctx).Info("The API server refused a request", "error", failure.Error())
	}
	err := r.writeStatus(ctx, s, p, statusOf(s, p))
	switch {
	case err != nil:
		return ctrl.Result{}, errors.Join(failure, err)
	case failure != nil && !apierr.IsRefusal(failure):
		return ctrl.Result{}, failure
	}
	return ctrl.Result{RequeueAfter: p.wake}, nil
}

// writeStatus writes the status once, only if it changed, then tells the user. It
// is the only writer of status and events. With the first attempt it warns of a reference
// in the syntax of another tool; the prompt of a child Run is data, in which none is meant.
func (r *Reconciler) writeStatus(ctx context.Context, s state, p plan, want v1alpha1.RunStatus) error {
	if p.deleteRun || !s.run.DeletionTimestamp.IsZero() {
		return nil
	}
	if err := (runstatus.Updater{Client: r.client, Events: r.events}).Report(ctx, s.run, want, preconditionsOf(s, p)...); err != nil {
		return err
	}
	if f, found := template.FindForeign(s.run.Spec.Prompt); found && p.nextAttempt != nil && s.attempt() == 0 && children.ParentOf(s.run) == nil {
		r.events.Eventf(s.run, nil, corev1.EventTypeWarning, "ReferenceNotReplaced", "Warn", "%s", untrusted.Line(f.Warning("spec.prompt"), task.MaxWarning))
	}
	return nil
}

// preconditionsOf are what must still be as it was seen. A claim, and giving a Run up,
// rest on all that was seen, a report of the runner that just came in
// included; the runner cannot starve these writes, for it is not there. All
// others rest on what the operator itself last wrote: the attempt, and the status
// and reason of Succeeded. So each transition is written, and announced, once, even
// if a stale copy of the Run is reconciled right after it.
func preconditionsOf(s state, p plan) []statuspatch.Op {
	givesUp := p.settles() && s.committed() == nil
	at := slices.IndexFunc(s.run.Status.Conditions, func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionSucceeded })
	if p.nextAttempt != nil || givesUp || s.run.Status.Attempt == nil || at < 0 {
		return []statuspatch.Op{statuspatch.SameObject(s.run), statuspatch.SameVersion(s.run)}
	}
	succeeded, path := s.run.Status.Conditions[at], fmt.Sprintf("/status/conditions/%d/", at)
	return []statuspatch.Op{
		statuspatch.SameObject(s.run),
		statuspatch.Same("/status/attempt/number", s.attempt()),
		statuspatch.Same(path+"type", succeeded.Type),
		statuspatch.Same(path+"status", succeeded.Status),
		statuspatch.Same(path+"reason", succeeded.Reason),
	}
}
