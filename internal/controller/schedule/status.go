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
func statusOf(o observed, p plan) v1alpha1.ScheduleStatus {
	had := o.schedule.Status
	s := *had.DeepCopy()
	s.ObservedGeneration = o.schedule.Generation
	s.Active = int32(min(len(o.active()), 1<<20))
	if p.create != nil {
		s.Active++
	}
	s.NextScheduleTime = nil
	if !p.handled.IsZero() {
		s.Internal.HandledTime = stamp(p.handled)
		s.NextScheduleTime = stamp(o.due(p.handled))
	}
	if !p.made.IsZero() {
		s.LastScheduleTime = stamp(p.made)
	}
	if p.missed > 0 {
		s.Missed += p.missed
		s.LastMissedTime = stamp(p.missedLast)
	}
	for i := range o.runs {
		done := o.runs[i].Status.CompletionTime
		if done != nil && succeeded(&o.runs[i]) && (s.LastSuccessfulTime == nil || s.LastSuccessfulTime.Before(done)) {
			s.LastSuccessfulTime = done.DeepCopy()
		}
	}
	if o.missing != "" && p.ready.Status == metav1.ConditionTrue {
		p.ready.Message = o.missing + ", so that its Runs wait: create it, or correct spec.runTemplate.spec. " + p.ready.Message
	}
	p.ready.Message = task.Cut(p.ready.Message, task.MaxMessage)
	s.Conditions = statuspatch.MergeConditions(s.Conditions, metav1.NewTime(o.now), o.schedule.Generation, statuspatch.ReadyConditions(p.ready)...)
	return s
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
func (r *Reconciler) updateStatus(ctx context.Context, o observed, p plan) error {
	patch, err := statuspatch.Diff(o.schedule.Status, statusOf(o, p), statuspatch.SameObject(o.schedule), statuspatch.SameVersion(o.schedule))
	if err != nil {
		return err
	}
	if patch != nil {
		if err := r.client.Status().Patch(ctx, o.schedule.DeepCopy(), patch); err != nil {
			return err
		}
	}
	for _, n := range p.notices {
		r.events.Eventf(o.schedule, nil, n.kind, n.reason, n.action, "%s", task.Cut(n.note, task.MaxMessage))
	}
	return nil
}

// missingInterval is how often a Schedule checks whether its missing Agent or Workflow exists: the controller does not
// watch these.
const missingInterval = time.Minute

// maxSleep is how long a change of the clock may remain unnoticed.
const maxSleep = time.Hour

// wakeAfter returns the delay until the next reconciliation: exactly when the next time is due.
func wakeAfter(o observed, p plan) time.Duration {
	most := maxSleep
	if o.missing != "" {
		most = missingInterval
	}
	wake := p.wake
	if wake == 0 {
		if p.handled.IsZero() {
			return 0
		}
		wake = o.due(p.handled).Sub(o.now)
	}
	return min(max(wake, time.Millisecond), most)
}
