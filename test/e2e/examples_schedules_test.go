//go:build e2e

package e2e

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// scheduleExamples are Runs by the clock.
var scheduleExamples = map[string]example{
	"nightly-audit.yaml": {
		models: answers("claude-sonnet-5", map[string]modeltest.Turn{
			"Audit these rules": finishing(args{"findings": []string{"Ferries and ships meet on one side."}}),
		}),
		person: func(s *exampleFixture) {
			night := s.scheduled("is Ready", func(st v1alpha1.ScheduleStatus) bool { return st.NextScheduleTime != nil })
			berlin, err := time.LoadLocation("Europe/Berlin")
			if err != nil {
				s.t.Fatal(err)
			}
			next := night.Status.NextScheduleTime.Time
			if at := next.In(berlin).Format("15:04:05"); at < "03:30:00" || at > "03:45:00" {
				s.t.Errorf("the next Run begins at %s", at)
			}
			now := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"schedule":"* * * * *","jitter":"0s"}}`))
			if err := cluster.admin.Patch(s.t.Context(), night, now); err != nil {
				s.t.Fatal(err)
			}
			s.scheduled("makes a Run", func(st v1alpha1.ScheduleStatus) bool { return st.LastScheduleTime != nil })
			var made v1alpha1.RunList
			s.list(&made, client.MatchingLabels{v1alpha1.LabelSchedule: "nightly-audit", "team": "harbor-office"})
			for i := range made.Items {
				s.runs["night"] = &made.Items[i]
			}
		},
		check: func(s *exampleFixture) {
			s.has("the output", s.output("night"), "Ferries and ships meet")
			run := s.runs["night"]
			at, err := time.Parse(time.RFC3339, run.Annotations[v1alpha1.AnnotationScheduledAt])
			if late := run.CreationTimestamp.Sub(at); err != nil || late < 0 || late >= time.Minute {
				s.t.Errorf("Run %s is for %s, and was made %s later: %v", run.Name, at, late, err)
			}
			done := s.scheduled("records the success", func(st v1alpha1.ScheduleStatus) bool { return st.LastSuccessfulTime != nil })
			if done.Status.Missed > 1 {
				s.t.Errorf("%d times were missed", done.Status.Missed)
			}
		},
	},
}

// scheduled is the Schedule of a manifest once its status is as wanted.
func (s *exampleFixture) scheduled(what string, holds func(v1alpha1.ScheduleStatus) bool) *v1alpha1.Schedule {
	s.t.Helper()
	var seen v1alpha1.Schedule
	err := until(s.t.Context(), func(ctx context.Context) (bool, error) {
		seen = v1alpha1.Schedule{}
		err := cluster.admin.Get(ctx, client.ObjectKey{Namespace: s.name, Name: "nightly-audit"}, &seen)
		return err == nil && holds(seen.Status), err
	})
	if err != nil {
		s.t.Fatalf("the Schedule never %s (%+v): %v", what, seen.Status, err)
	}
	return &seen
}
