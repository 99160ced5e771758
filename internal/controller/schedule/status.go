package schedule

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/statuspatch"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// statusOf returns the status for a plan.
func statusOf(s state, p plan) v1alpha1.ScheduleStatus {
	had := s.schedule.Status
	status := *had.DeepCopy()
	status.ObservedGeneration = s.schedule.Generation
	status.Active = int32(min(len(s.active()), 1<<20))
	if p.create != nil {
		status.Active++
	}
	status.NextScheduleTime = nil
	if !p.handled.IsZero() {
		status.Internal.HandledTime = stamp(p.handled)
		status.NextScheduleTime = stamp(s.due(p.handled))
	}
	if !p.made.IsZero() {
		status.LastScheduleTime = stamp(p.made)
	}
	if p.missed > 0 {
		status.Missed += p.missed
		status.LastMissedTime = stamp(p.missedLast)
	}
	for i := range s.runs {
		done := s.runs[i].Status.CompletionTime
		if done != nil && succeeded(&s.runs[i]) && (status.LastSuccessfulTime == nil || status.LastSuccessfulTime.Before(done)) {
			status.LastSuccessfulTime = done.DeepCopy()
		}
	}
	if s.missing != "" && p.ready.Status == metav1.ConditionTrue {
		p.ready.Message = s.missing + ", so that its Runs wait: create it, or correct spec.runTemplate.spec. " + p.ready.Message
	}
	p.ready.Message = task.Cut(p.ready.Message, task.MaxMessage)
	status.Conditions = statuspatch.MergeConditions(status.Conditions, metav1.NewTime(s.now), s.schedule.Generation, statuspatch.ReadyConditions(p.ready)...)
	return status
}

func stamp(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	out := metav1.NewTime(t.UTC())
	return &out
}

// updateStatus writes the status once, if it changed, and then records events. The patch requires an unchanged resource
// version, so that nothing is counted twice.
func (r *Reconciler) updateStatus(ctx context.Context, s state, p plan) error {
	patch, err := statuspatch.Diff(s.schedule.Status, statusOf(s, p), statuspatch.SameObject(s.schedule), statuspatch.SameVersion(s.schedule))
	if err != nil {
		return err
	}
	if patch != nil {
		if err := r.client.Status().Patch(ctx, s.schedule.DeepCopy(), patch); err != nil {
			return err
		}
	}
	for _, n := range p.notices {
		r.events.Eventf(s.schedule, nil, n.kind, n.reason, n.action, "%s", task.Cut(n.note, task.MaxMessage))
	}
	return nil
}

// missingInterval is how often a Schedule checks whether its missing Agent or Workflow exists: the controller does not
// watch these.
const missingInterval = time.Minute

// maxSleep is how long a change of the clock may remain unnoticed.
const maxSleep = time.Hour

// wakeAfter returns the delay until the next reconciliation: exactly when the next time is due.
func wakeAfter(s state, p plan) time.Duration {
	most := maxSleep
	if s.missing != "" {
		most = missingInterval
	}
	wake := p.wake
	if wake == 0 {
		if p.handled.IsZero() {
			return 0
		}
		wake = s.due(p.handled).Sub(s.now)
	}
	return min(max(wake, time.Millisecond), most)
}
