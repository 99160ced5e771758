package schedule

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/statuspatch"
	"github.com/deckhand-dev/deckhand/runner/task"
)

var errOld = errors.New("it has changed meanwhile")

// statusOf is the status that a plan amounts to.
func statusOf(w world, p plan) v1alpha1.ScheduleStatus {
	had := w.schedule.Status
	s := *had.DeepCopy()
	s.ObservedGeneration = w.schedule.Generation
	s.Active = int32(min(len(w.active()), 1<<20))
	if p.create != nil {
		s.Active++
	}
	s.NextScheduleTime = nil
	if !p.handled.IsZero() {
		s.Internal.HandledTime = stamp(p.handled)
		s.NextScheduleTime = stamp(w.due(p.handled))
	}
	if !p.made.IsZero() {
		s.LastScheduleTime = stamp(p.made)
	}
	if p.missed > 0 {
		s.Missed += p.missed
		s.LastMissedTime = stamp(p.missedLast)
	}
	for i := range w.runs {
		done := w.runs[i].Status.CompletionTime
		if done != nil && succeeded(&w.runs[i]) && (s.LastSuccessfulTime == nil || s.LastSuccessfulTime.Before(done)) {
			s.LastSuccessfulTime = done.DeepCopy()
		}
	}
	p.ready.Message = task.Cut(p.ready.Message, task.MaxMessage)
	s.Conditions = statuspatch.MergeConditions(s.Conditions, metav1.NewTime(w.now), w.schedule.Generation, statuspatch.ReadyConditions(p.ready)...)
	return s
}

func stamp(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	out := metav1.NewTime(t.UTC())
	return &out
}

// report writes the status once, if it changed, and then tells people. It is
// locked: what was counted must not be counted twice.
func (r *Reconciler) report(ctx context.Context, w world, p plan) error {
	patch, err := statuspatch.Diff(w.schedule.Status, statusOf(w, p), statuspatch.SameObject(w.schedule), statuspatch.SameVersion(w.schedule))
	if err != nil {
		return err
	}
	if patch != nil {
		if err := r.client.Status().Patch(ctx, w.schedule.DeepCopy(), patch); err != nil {
			return err
		}
	}
	for _, t := range p.told {
		r.events.Eventf(w.schedule, nil, t.kind, t.reason, t.action, "%s", task.Cut(t.note, task.MaxMessage))
	}
	return nil
}

// maxSleep is how long a clock may be set without being noticed.
const maxSleep = time.Hour

// wakes is when to look again: when the next time comes, to the moment.
func wakes(w world, p plan) time.Duration {
	wake := p.wake
	if wake == 0 {
		if p.handled.IsZero() {
			return 0
		}
		wake = w.due(p.handled).Sub(w.now)
	}
	return min(max(wake, time.Millisecond), maxSleep)
}
