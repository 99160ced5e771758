package schedule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
)

// look reads the Runs that a Schedule made. The cache may not show the last one
// yet, so that one is asked for.
func (r *Reconciler) look(ctx context.Context, s *v1alpha1.Schedule) (world, error) {
	w := world{schedule: s, now: r.now()}
	var err error
	if w.calendar, err = read(s.Spec.Schedule, s.Spec.TimeZone); err != nil {
		w.problem = err.Error()
	}
	var list v1alpha1.RunList
	if err := r.client.List(ctx, &list, client.InNamespace(s.Namespace), client.MatchingLabels{v1alpha1.LabelSchedule: s.Name}); err != nil {
		return w, fmt.Errorf("listing Runs: %w", err)
	}
	w.runs = slices.DeleteFunc(list.Items, func(run v1alpha1.Run) bool { return !isOf(s, &run) })
	if err := r.lookForLast(ctx, &w); err != nil {
		return w, err
	}
	inOrder(w.runs)
	return w, nil
}

// isOf says whether a Schedule made a Run: an admission policy keeps everybody but
// the operator from saying so of theirs, as long as owner, kind and label say it. A
// Run that a backup brought back says so too, but nobody can know.
func isOf(s *v1alpha1.Schedule, run *v1alpha1.Run) bool {
	owner := metav1.GetControllerOf(run)
	if owner == nil || owner.UID != s.UID || owner.Kind != "Schedule" || !strings.HasPrefix(owner.APIVersion, v1alpha1.GroupVersion.Group+"/") {
		return false
	}
	_, restored := runstatus.Restored(run)
	return run.Labels[v1alpha1.LabelSchedule] == s.Name && !restored
}

// lookForLast looks on the API server for the Run that was made last, where
// whether it is active matters.
func (r *Reconciler) lookForLast(ctx context.Context, w *world) error {
	s := w.schedule
	if s.Status.LastScheduleTime == nil || w.calendar == nil || s.Spec.Suspend {
		return nil
	}
	last := s.Status.LastScheduleTime.Time
	if w.of(last) != nil || w.calendar.last(w.base(), w.past()).IsZero() {
		return nil
	}
	run, err := r.find(ctx, s, last)
	if err == nil && run != nil && isOf(s, run) {
		w.runs = append(w.runs, *run)
	}
	return err
}

// find is what has the name of the Run for a time, as the API server knows it;
// nil: nothing.
func (r *Reconciler) find(ctx context.Context, s *v1alpha1.Schedule, t time.Time) (*v1alpha1.Run, error) {
	var run v1alpha1.Run
	key := client.ObjectKey{Namespace: s.Namespace, Name: nameOf(s.Name, t)}
	if err := r.live.Get(ctx, key, &run); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil //nolint:nilnil // nothing has that name, which is no fault
		}
		return nil, fmt.Errorf("getting Run %s: %w", key.Name, err)
	}
	return &run, nil
}
