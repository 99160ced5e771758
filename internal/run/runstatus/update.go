// Package runstatus writes the status of Runs of Agents and of Workflows: the four conditions from one reason, events
// and metrics, and how long a finished Run is kept. The controllers of Runs decide the outcome.
package runstatus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/statuspatch"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/run/runmetrics"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// An Updater writes the status of Runs, events, metrics and spans.
type Updater struct {
	Client client.Client
	Events events.EventRecorder
	Spans  Spans // nil: there are no traces
}

// UpdateStatus writes the status of a Run once, if it changed, and then records events and metrics.
// It is not an error if the Run was deleted.
func (u Updater) UpdateStatus(ctx context.Context, run *v1alpha1.Run, want v1alpha1.RunStatus, preconditions ...statuspatch.Op) error {
	patch, err := statuspatch.Diff(run.Status, want, preconditions...)
	if err != nil || patch == nil {
		return err
	}
	after := run.DeepCopy()
	if err := u.Client.Status().Patch(ctx, after, patch); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("patching status: %w", err))
	}
	after.Status = want
	for _, t := range Transitions(run.Status, after.Status) {
		u.Events.Eventf(after, nil, t.Kind, t.Reason, t.Action, "%s", t.Note)
		if t.Action == settle {
			u.recordEnd(ctx, t.Reason, after)
		}
	}
	if reason := beganToWait(run.Status, after.Status); reason != "" {
		runmetrics.Waits(after, reason)
		logWait(ctx, reason, after)
	}
	runmetrics.Attempts(after, run.Status, after.Status)
	logAttempt(ctx, run.Status, after)
	return nil
}

// The kinds of transitions of a Run.
const (
	settle = "Settle"
	wait   = "Wait"
	warn   = "Warn"
)

// recordEnd records the end of a Run in metrics, log and traces.
func (u Updater) recordEnd(ctx context.Context, reason string, run *v1alpha1.Run) {
	runmetrics.Finished(run, reason)
	logEnd(ctx, reason, run)
	if u.Spans != nil {
		u.Spans.Export(spanOf(run, reason))
	}
}

// workReasons are the reasons of an active Run that does not wait.
var workReasons = map[string]bool{v1alpha1.ReasonStarting: true, v1alpha1.ReasonRunning: true, v1alpha1.ReasonStopping: true}

// beganToWait returns the new reason if a Run began to wait or to retry, or an empty reason.
func beganToWait(before, after v1alpha1.RunStatus) string {
	was, is := succeeded(before), succeeded(after)
	if is.Status != metav1.ConditionUnknown || was.Reason == is.Reason || workReasons[is.Reason] {
		return ""
	}
	return is.Reason
}

// A Transition is a change of a Run that is reported as an Event.
type Transition struct {
	Kind, Reason, Action, Note string
}

// eventReasons are the reasons of an active Run that may need attention. The others end by
// themselves, and their events would only cost writes.
var eventReasons = map[string]bool{
	v1alpha1.ReasonPending:       true,
	v1alpha1.ReasonUnschedulable: true,
	v1alpha1.ReasonImagePulling:  true,
	v1alpha1.ReasonSecretMissing: true,
	v1alpha1.ReasonQuotaExceeded: true,
	v1alpha1.ReasonRetrying:      true,

	v1alpha1.ReasonWaitingForModel:  true,
	v1alpha1.ReasonAwaitingAnswer:   true,
	v1alpha1.ReasonAwaitingApproval: true,
}

// requestReasons are the reasons for which each request to users emits one Event.
var requestReasons = map[string]bool{v1alpha1.ReasonAwaitingAnswer: true, v1alpha1.ReasonAwaitingApproval: true}

// Transitions returns the transitions between two statuses.
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
	case requestReasons[is.Reason] && !isNewRequest(was, is, after):
		return nil
	case eventReasons[is.Reason] && (was.Reason != is.Reason || requestReasons[is.Reason]):
		return []Transition{{eventType(is.Reason), is.Reason, wait, is.Message}}
	}
	return nil
}

// isNewRequest reports whether a Run makes a new request. The name of the Decision in the message changes after a
// refusal, and an attempt may repeat the request of an earlier one: neither is new.
func isNewRequest(was, is metav1.Condition, after v1alpha1.RunStatus) bool {
	if requestReasons[was.Reason] {
		return decisions.AsksMore(was.Message, is.Message)
	}
	return after.Progress == nil || !decisions.AskedBefore(after.Progress.Pending, after.Attempt)
}

// eventType returns Normal if a Run waits for a user, Warning if something is missing.
func eventType(reason string) string {
	if requestReasons[reason] {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

// warnings returns warnings for the author of the Agent, even if the Run succeeded.
func warnings(s v1alpha1.RunStatus) []Transition {
	if s.Progress == nil || s.Progress.Result == nil || s.Progress.Result.Warning == "" {
		return nil
	}
	note := untrusted.Words(s.Progress.Result.Warning, task.MaxWarning)
	return []Transition{{corev1.EventTypeWarning, "ResultWarning", warn, note}}
}

func succeeded(s v1alpha1.RunStatus) metav1.Condition {
	for _, c := range s.Conditions {
		if c.Type == v1alpha1.ConditionSucceeded {
			return c
		}
	}
	return metav1.Condition{}
}

// MaxCause is how many bytes of a cause WithDeadline keeps in any case.
const MaxCause = task.MaxMessage - 96

// WithDeadline adds to the message of a Run until when it waits, and the limit that bounds the wait. The time is
// absolute and in whole seconds, so that the message does not change while the Run waits.
func WithDeadline(message string, until time.Time, limit time.Duration, name string) string {
	end := deadline(until, limit, name)
	return task.Cut(strings.TrimSuffix(message, "."), task.MaxMessage-len(end)) + end
}

// TrimDeadline returns a message without what WithDeadline added to it for the same deadline.
func TrimDeadline(message string, until time.Time, limit time.Duration, name string) string {
	return strings.TrimSuffix(message, deadline(until, limit, name))
}

// deadline returns the last sentence of the message of a Run that waits for a limited time.
func deadline(until time.Time, limit time.Duration, name string) string {
	layout := "15:04:05 UTC"
	if limit >= 24*time.Hour {
		layout = "2006-01-02 15:04:05 UTC"
	}
	return fmt.Sprintf(". Waits until %s (%s)", until.UTC().Format(layout), name)
}

// IgnoreFinished returns nil for an error that means that the desired state of a Run was not changed because the Run
// has finished or no longer exists. A cache can be late: there is nothing left to stop or pause.
func IgnoreFinished(err error) error {
	if status, is := errors.AsType[*apierrors.StatusError](err); is && apierrors.IsInvalid(err) && status.Status().Details != nil &&
		slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "spec.desiredState" }) {
		return nil
	}
	return client.IgnoreNotFound(err)
}

// IsFinished reports whether a Run has ended.
func IsFinished(run *v1alpha1.Run) bool { return run.Status.CompletionTime != nil }

// SinceCompletion returns how long ago a Run finished.
func SinceCompletion(run *v1alpha1.Run, now time.Time) time.Duration {
	return now.Sub(run.Status.CompletionTime.Time)
}

// TTL returns after how long a finished Run is deleted; false: it is kept until a user or its owner deletes it.
// byDefault is the TTL of Runs without one; 0: they are kept. The default does not apply to a Run that another object
// controls.
func TTL(run *v1alpha1.Run, byDefault time.Duration) (time.Duration, bool) {
	switch own := run.Spec.TTLSecondsAfterFinished; {
	case TrackingKey(run) != "":
		return 0, false
	case own != nil:
		return time.Duration(*own) * time.Second, true
	case metav1.GetControllerOfNoCopy(run) != nil:
		return 0, false
	}
	return byDefault, byDefault > 0
}

// instanceLabel is how Argo CD tracks objects by default. Helm charts set it too.
const instanceLabel = "app.kubernetes.io/instance"

// IsTrackingKey reports whether a GitOps tool tracks its objects by a label or annotation. Such
// keys are not copied to the objects that a Run creates: the tool would delete these.
func IsTrackingKey(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return strings.HasSuffix(domain, ".toolkit.fluxcd.io") || strings.HasPrefix(key, "argocd.argoproj.io/") || key == instanceLabel
}

// TrackingKey returns the label or annotation by which a GitOps tool tracks a Run, or an empty text.
func TrackingKey(run *v1alpha1.Run) string {
	for _, set := range []map[string]string{run.Labels, run.Annotations} {
		for _, key := range slices.Sorted(maps.Keys(set)) {
			if IsTrackingKey(key) {
				return key
			}
		}
	}
	return ""
}

// OutcomeWithTTLNote returns the outcome of a finished Run with a note, once, why its TTL is
// ignored.
func OutcomeWithTTLNote(run *v1alpha1.Run) Outcome {
	had := OutcomeOf(run.Status)
	owner := TrackingKey(run)
	if !had.Settles() || owner == "" || run.Spec.TTLSecondsAfterFinished == nil {
		return had
	}
	note := fmt.Sprintf(". It is not deleted after spec.ttlSecondsAfterFinished: its label or annotation %s shows that a GitOps tool manages it, which would create and run it again", owner)
	had.Message = task.Cut(strings.TrimSuffix(had.Message, note), task.MaxMessage-len(note)) + note
	return had
}

// InheritedLabels returns the labels that a child Run copies from its parent: all except tracking labels of GitOps
// tools, labels of Deckhand, and marks of backup tools, because a restored Run is not executed.
func InheritedLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range labels {
		if !IsTrackingKey(key) && !strings.HasPrefix(key, v1alpha1.GroupVersion.Group+"/") && !IsRestoreMark(key) {
			out[key] = value
		}
	}
	return out
}
