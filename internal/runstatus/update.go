package runstatus

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/statuspatch"
	"github.com/deckhand-dev/deckhand/internal/untrusted"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A Updater writes the status of Runs, and tells people.
type Updater struct {
	Client client.Client
	Events events.EventRecorder
}

// Report writes the status that a Run is to have, once, if it is another than it
// had, and then tells of what changed. A Run that is gone meanwhile needs none.
func (r Updater) Report(ctx context.Context, run *v1alpha1.Run, want v1alpha1.RunStatus, demands ...statuspatch.Op) error {
	patch, err := statuspatch.Diff(run.Status, want, demands...)
	if err != nil || patch == nil {
		return err
	}
	after := run.DeepCopy()
	if err := r.Client.Status().Patch(ctx, after, patch); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("patching status: %w", err))
	}
	after.Status = want
	for _, t := range Transitions(run.Status, after.Status) {
		r.Events.Eventf(after, nil, t.Kind, t.Reason, t.Action, "%s", t.Note)
		observe(t, after)
	}
	return nil
}

// A Transition is a change that people are told of.
type Transition struct {
	Kind, Reason, Action, Note string
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

// Transitions are what changed between two statuses, in the past tense: pure.
func Transitions(before, after v1alpha1.RunStatus) []Transition {
	was, is := succeeded(before), succeeded(after)
	if was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message {
		return nil
	}
	switch {
	case is.Status == metav1.ConditionTrue && was.Status != is.Status:
		return append([]Transition{{corev1.EventTypeNormal, is.Reason, settle, is.Message}}, warnings(after)...)
	case is.Status == metav1.ConditionFalse && was.Status != is.Status:
		return append([]Transition{{corev1.EventTypeWarning, is.Reason, settle, is.Message}}, warnings(after)...)
	case is.Status == was.Status && is.Status != metav1.ConditionUnknown:
		return []Transition{{corev1.EventTypeNormal, "Kept", "Keep", is.Message}}
	case told[is.Reason] && (was.Reason != is.Reason || asks[is.Reason]):
		return []Transition{{eventType(is.Reason), is.Reason, wait, is.Message}}
	}
	return nil
}

// eventType is Normal if a Run waits for a user as it is meant to, Warning if something
// is in its way.
func eventType(reason string) string {
	if asks[reason] {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

// warnings are what the owner of the Agent of a Run that ended should mend though
// it may have ended well.
func warnings(s v1alpha1.RunStatus) []Transition {
	if s.Progress == nil || s.Progress.Result == nil || s.Progress.Result.Warning == "" {
		return nil
	}
	note := untrusted.Line(s.Progress.Result.Warning, task.MaxWarning)
	return []Transition{{corev1.EventTypeWarning, v1alpha1.ReasonToolUnavailable, warn, note}}
}

func succeeded(s v1alpha1.RunStatus) metav1.Condition {
	for _, c := range s.Conditions {
		if c.Type == v1alpha1.ConditionSucceeded {
			return c
		}
	}
	return metav1.Condition{}
}
