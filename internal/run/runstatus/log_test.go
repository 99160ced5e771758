package runstatus_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// A Run is followed in the operator's log, without what models or users wrote.
func TestLogOfARun(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	run := gen.Run(func(r *v1alpha1.Run) { r.CreationTimestamp = metav1.NewTime(start) })
	scheme := fake.NewClientBuilder().Build().Scheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(run).WithStatusSubresource(run).Build()
	var lines []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	ctx := logr.NewContext(t.Context(), logger)
	updater := runstatus.Updater{Client: c, Events: events.NewFakeRecorder(100)}
	update := func(change func(*v1alpha1.RunStatus)) {
		t.Helper()
		var now v1alpha1.Run
		if err := c.Get(ctx, client.ObjectKeyFromObject(run), &now); err != nil {
			t.Fatal(err)
		}
		want := now.Status.DeepCopy()
		change(want)
		if err := updater.UpdateStatus(ctx, &now, *want); err != nil {
			t.Fatal(err)
		}
	}
	succeeded := func(s *v1alpha1.RunStatus, status metav1.ConditionStatus, reason string) {
		s.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: status, Reason: reason, Message: "a secret of the model", LastTransitionTime: metav1.NewTime(start)}}
	}
	attempt := func(s *v1alpha1.RunStatus, n int32, pod string) {
		s.Attempt = &v1alpha1.Attempt{Number: n, Pod: pod}
	}

	update(func(s *v1alpha1.RunStatus) { succeeded(s, metav1.ConditionUnknown, "Queued") })
	update(func(s *v1alpha1.RunStatus) { s.Conditions[0].Message = "one Run less is before it" })
	update(func(s *v1alpha1.RunStatus) { succeeded(s, metav1.ConditionUnknown, "Starting"); attempt(s, 1, "fix-1") })
	update(func(s *v1alpha1.RunStatus) { s.Attempt.PodUID = "uid" })
	update(func(s *v1alpha1.RunStatus) { succeeded(s, metav1.ConditionUnknown, "Retrying"); s.Failures = 1 })
	update(func(s *v1alpha1.RunStatus) { succeeded(s, metav1.ConditionUnknown, "Starting"); attempt(s, 2, "fix-2") })
	update(func(s *v1alpha1.RunStatus) {
		succeeded(s, metav1.ConditionTrue, "Finished")
		end, cost := metav1.NewTime(start.Add(90*time.Second)), int64(420_000)
		s.CompletionTime = &end
		s.Progress = &v1alpha1.RunProgress{Version: 1, Attempt: 2, Counts: v1alpha1.Counts{Steps: 3}, Usage: v1alpha1.Usage{TotalTokens: 90, CostMicroUSD: &cost}}
	})
	update(func(s *v1alpha1.RunStatus) { s.Conditions[0].Message += "; kept" })

	want := []string{
		`"level"=0 "msg"="Run waits" "agent"="fixer" "reason"="Queued"`,
		`"level"=0 "msg"="Attempt started" "agent"="fixer" "attempt"=1 "pod"="fix-1"`,
		`"level"=0 "msg"="Run waits" "agent"="fixer" "reason"="Retrying"`,
		`"level"=0 "msg"="Attempt started" "agent"="fixer" "attempt"=2 "pod"="fix-2" "failures"=1 "disruptions"=0`,
		`"level"=0 "msg"="Run ended" "agent"="fixer" "reason"="Finished" "failures"=1 "disruptions"=0 "duration"="1m30s" "steps"=3 "tokens"=90 "costUSD"=0.42`,
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(lines, "\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
