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
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/cluster/calendar"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// observe reads the Runs of a Schedule. The last Run may be missing in the cache, so it is read from the API server.
func (r *Reconciler) observe(ctx context.Context, schedule *v1alpha1.Schedule) (state, error) {
	s := state{schedule: schedule, now: r.now()}
	var err error
	if s.calendar, err = calendar.Read(schedule.Spec.Schedule, schedule.Spec.TimeZone); err != nil {
		s.problem = err.Error()
	}
	var list v1alpha1.RunList
	if err := r.client.List(ctx, &list, client.InNamespace(schedule.Namespace), client.MatchingLabels{v1alpha1.LabelSchedule: schedule.Name}); err != nil {
		return s, fmt.Errorf("listing Runs: %w", err)
	}
	s.runs = slices.DeleteFunc(list.Items, func(run v1alpha1.Run) bool { return !isOwned(schedule, &run) })
	if err := r.readLast(ctx, &s); err != nil {
		return s, err
	}
	sortByTime(s.runs)
	s.missing, err = r.missing(ctx, schedule)
	return s, err
}

// missing describes that the Agent or Workflow of the Runs does not exist, according to the cache; empty: it exists.
func (r *Reconciler) missing(ctx context.Context, schedule *v1alpha1.Schedule) (string, error) {
	kind, name, target := "Agent", schedule.Spec.RunTemplate.Spec.Agent, client.Object(new(v1alpha1.Agent))
	if name == "" {
		kind, name, target = "Workflow", schedule.Spec.RunTemplate.Spec.Workflow, new(v1alpha1.Workflow)
	}
	if name == "" { // the operator does not keep a spec that is too large
		return "", nil
	}
	found, err := apierr.Found(r.client.Get(ctx, client.ObjectKey{Namespace: schedule.Namespace, Name: name}, target))
	switch {
	case err != nil:
		return "", fmt.Errorf("getting %s %s: %w", kind, name, err)
	case found:
		return "", nil
	}
	return fmt.Sprintf("%s %s not found", kind, name), nil
}

// isOwned reports whether a Schedule created a Run. An admission policy lets only the operator create Runs with this
// owner, kind and label. A restored Run may lack them.
func isOwned(schedule *v1alpha1.Schedule, run *v1alpha1.Run) bool {
	owner := metav1.GetControllerOf(run)
	if owner == nil || owner.UID != schedule.UID || owner.Kind != "Schedule" || !strings.HasPrefix(owner.APIVersion, v1alpha1.GroupVersion.Group+"/") {
		return false
	}
	_, restored := runstatus.Restored(run)
	return run.Labels[v1alpha1.LabelSchedule] == schedule.Name && !restored
}

// readLast reads the last created Run from the API server, if a time is due and the cache does not have that Run.
func (r *Reconciler) readLast(ctx context.Context, s *state) error {
	schedule := s.schedule
	if schedule.Status.LastScheduleTime == nil || s.calendar == nil || schedule.Spec.Suspend {
		return nil
	}
	last := schedule.Status.LastScheduleTime.Time
	if s.of(last) != nil || s.calendar.Last(s.base(), s.past()).IsZero() {
		return nil
	}
	run, found, err := r.find(ctx, schedule, last)
	if found && isOwned(schedule, run) {
		s.runs = append(s.runs, *run)
	}
	return err
}

// find returns the Run for a time by its name, from the API server; false: there is none.
func (r *Reconciler) find(ctx context.Context, schedule *v1alpha1.Schedule, t time.Time) (*v1alpha1.Run, bool, error) {
	var run v1alpha1.Run
	key := client.ObjectKey{Namespace: schedule.Namespace, Name: nameOf(schedule.Name, t)}
	found, err := apierr.Found(r.live.Get(ctx, key, &run))
	if err != nil {
		return nil, false, fmt.Errorf("getting Run %s: %w", key.Name, err)
	}
	return &run, found, nil
}
