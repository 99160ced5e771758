package run

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/statuspatch"
)

// report writes the status once, only if it changed, then tells the user. It
// is the only writer of status and events.
func (r *Reconciler) report(ctx context.Context, w world, p plan, want v1alpha1.RunStatus) error {
	if p.forget || !w.run.DeletionTimestamp.IsZero() {
		return nil
	}
	patch, err := statuspatch.Diff(w.run.Status, want, demands(w, p)...)
	if err != nil || patch == nil {
		return err
	}
	after := w.run.DeepCopy()
	if err := r.client.Status().Patch(ctx, after, patch); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("patching status: %w", err))
	}
	after.Status = want
	for _, t := range transitions(w.run.Status, after.Status) {
		r.events.Eventf(after, nil, t.kind, t.reason, t.action, "%s", t.note)
		observe(t, after)
	}
	return nil
}

// demands are what must still be as it was seen. A claim, and giving a Run up,
// rest on all that was seen, a report of the runner that just came in
// included; the runner cannot starve these writes, for it is not there. All
// others rest on the attempt alone.
func demands(w world, p plan) []statuspatch.Op {
	givesUp := p.settles() && w.committed() == nil
	if p.claim != nil || givesUp || w.run.Status.Attempt == nil {
		return []statuspatch.Op{statuspatch.SameObject(w.run), statuspatch.SameVersion(w.run)}
	}
	return []statuspatch.Op{
		statuspatch.SameObject(w.run),
		statuspatch.Same("/status/attempt/number", w.attempt()),
	}
}

// A transition is a change that people are told of.
type transition struct {
	kind, reason, action, note string
}

// told are the reasons of an active Run that need somebody's attention. The
// others pass by themselves and would only cost writes.
var told = map[string]bool{
	v1alpha1.ReasonPending:       true,
	v1alpha1.ReasonUnschedulable: true,
	v1alpha1.ReasonImagePulling:  true,
	v1alpha1.ReasonSecretMissing: true,
	v1alpha1.ReasonQuotaExceeded: true,
	v1alpha1.ReasonRetrying:      true,
	v1alpha1.ReasonRateLimited:   true,

	v1alpha1.ReasonAwaitingAnswer:   true,
	v1alpha1.ReasonAwaitingApproval: true,
}

// asks are the reasons whose every message is a new one for people.
var asks = map[string]bool{v1alpha1.ReasonAwaitingAnswer: true, v1alpha1.ReasonAwaitingApproval: true}

// transitions are what changed between two statuses, in the past tense: pure.
func transitions(before, after v1alpha1.RunStatus) []transition {
	was, is := succeeded(before), succeeded(after)
	if was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message {
		return nil
	}
	switch {
	case is.Status == metav1.ConditionTrue && was.Status != is.Status:
		return []transition{{corev1.EventTypeNormal, is.Reason, "Settle", is.Message}}
	case is.Status == metav1.ConditionFalse && was.Status != is.Status:
		return []transition{{corev1.EventTypeWarning, is.Reason, "Settle", is.Message}}
	case is.Status == was.Status && is.Status != metav1.ConditionUnknown:
		return []transition{{corev1.EventTypeNormal, "Kept", "Keep", is.Message}}
	case told[is.Reason] && (was.Reason != is.Reason || asks[is.Reason]):
		return []transition{{corev1.EventTypeWarning, is.Reason, "Wait", is.Message}}
	}
	return nil
}

func succeeded(s v1alpha1.RunStatus) metav1.Condition {
	for _, c := range s.Conditions {
		if c.Type == v1alpha1.ConditionSucceeded {
			return c
		}
	}
	return metav1.Condition{}
}
