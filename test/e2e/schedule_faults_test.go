//go:build e2e

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// If a Run is still active at the next scheduled time, Forbid skips that time and reports it,
// and Replace stops the Run and creates another. A suspended Schedule creates none.
func TestConcurrencyPolicyOfASchedule(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, map[string]modeltest.Dialogue{"watch": {Turns: looks(voyage, 300)}})
	s.everyMinute("forbid", func(*v1alpha1.Schedule) {})
	s.everyMinute("replace", func(d *v1alpha1.Schedule) { d.Spec.ConcurrencyPolicy = v1alpha1.ConcurrencyReplace })
	s.everyMinute("suspended", func(d *v1alpha1.Schedule) { d.Spec.Suspend = true })
	first := s.awaitSchedule("forbid", "makes a Run", func(st v1alpha1.ScheduleStatus) bool { return st.LastScheduleTime != nil })
	left := s.awaitSchedule("forbid", "leaves a time out", func(st v1alpha1.ScheduleStatus) bool { return st.Missed > 0 })
	at := first.Status.LastScheduleTime.Time
	if left.Status.Missed != 1 || !left.Status.LastScheduleTime.Time.Equal(at) || left.Status.LastMissedTime.Sub(at) != time.Minute || left.Status.Active != 1 {
		t.Errorf("its status is %+v, after %+v", left.Status, first.Status)
	}
	s.has("the event", s.eventsOf("forbid"), "No Run for "+left.Status.LastMissedTime.UTC().Format(time.RFC3339), "still active")
	runs := s.runsOfSchedule("forbid")
	if len(runs) != 1 || finished(&runs[0]) || runs[0].Status.Attempt == nil {
		t.Errorf("its Runs are %v", runs)
	}
	var pair []v1alpha1.Run // the Schedules need not have begun in the same minute
	s.awaitSchedule("replace", "makes the second", func(v1alpha1.ScheduleStatus) bool {
		pair = s.runsOfSchedule("replace")
		return len(pair) >= 2
	})
	replaced := s.ends(&pair[0], "False Stopped")
	s.awaitRunner(pair[1].Name)
	if pair[1].CreationTimestamp.Before(replaced.Status.CompletionTime) {
		t.Errorf("the second was made at %s, the first ended at %s", pair[1].CreationTimestamp, replaced.Status.CompletionTime)
	}
	off := s.awaitSchedule("suspended", "is looked at", func(st v1alpha1.ScheduleStatus) bool { return st.ObservedGeneration > 0 })
	if none := s.runsOfSchedule("suspended"); len(none) != 0 || off.Status.NextScheduleTime != nil || off.Status.Missed != 0 {
		t.Errorf("it made %d Runs: %+v", len(none), off.Status)
	}
	for _, name := range []string{"forbid", "replace", "suspended"} {
		if err := cluster.admin.Delete(t.Context(), s.clock(name)); err != nil {
			t.Fatal(err)
		}
	}
	s.awaitNoRuns()
}

func (s *exampleFixture) clock(name string) *v1alpha1.Schedule {
	return &v1alpha1.Schedule{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: name}}
}

func (s *exampleFixture) everyMinute(name string, mod func(*v1alpha1.Schedule)) {
	s.t.Helper()
	d := s.clock(name)
	d.Spec.Schedule = "* * * * *"
	d.Spec.RunTemplate.Spec = v1alpha1.RunSpec{Agent: "watch", Prompt: "Look around."}
	mod(d)
	s.create(d)
}

// awaitSchedule is a Schedule once its status is as wanted.
func (s *exampleFixture) awaitSchedule(name, what string, holds func(v1alpha1.ScheduleStatus) bool) *v1alpha1.Schedule {
	s.t.Helper()
	var seen v1alpha1.Schedule
	err := until(s.t.Context(), func(ctx context.Context) (bool, error) {
		seen = v1alpha1.Schedule{}
		err := cluster.admin.Get(ctx, client.ObjectKeyFromObject(s.clock(name)), &seen)
		return err == nil && holds(seen.Status), err
	})
	if err != nil {
		s.t.Fatalf("Schedule %s never %s (%+v): %v", name, what, seen.Status, err)
	}
	return &seen
}

// runsOfSchedule are the Runs of a Schedule, the oldest first.
func (s *exampleFixture) runsOfSchedule(schedule string) []v1alpha1.Run {
	s.t.Helper()
	var made v1alpha1.RunList
	s.list(&made, client.MatchingLabels{v1alpha1.LabelSchedule: schedule})
	slices.SortFunc(made.Items, func(a, b v1alpha1.Run) int { return strings.Compare(a.Name, b.Name) })
	return made.Items
}

// eventsOf are the messages of events about an object, once there are some
// warnings.
func (s *exampleFixture) eventsOf(name string) string {
	s.t.Helper()
	var said string
	err := until(s.t.Context(), func(ctx context.Context) (bool, error) {
		var list corev1.EventList
		err := cluster.admin.List(ctx, &list, client.InNamespace(s.name))
		for i := range list.Items {
			if e := &list.Items[i]; e.InvolvedObject.Name == name && e.Type == corev1.EventTypeWarning {
				said += e.Message + "\n"
			}
		}
		return said != "", err
	})
	if err != nil {
		s.t.Errorf("nothing is told of %s: %v", name, err)
	}
	return said
}
