package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestConditions(t *testing.T) {
	cases := map[string]struct {
		plan      plan
		succeeded metav1.ConditionStatus
		finished  bool
	}{
		"as the schema makes it": {plan{}, metav1.ConditionUnknown, false},
		"at work":                {waiting(v1alpha1.ReasonRunning, "", 0), metav1.ConditionUnknown, false},
		"done":                   {plan{reason: v1alpha1.ReasonFinished, outcome: metav1.ConditionTrue}, metav1.ConditionTrue, true},
		"failed":                 {failure(v1alpha1.ReasonStuck, "why"), metav1.ConditionFalse, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := gen.Run()
			if tc.plan.reason != "" {
				run.Status = statusOf(state{run: run, now: gen.Noon}, tc.plan)
			}
			if got := runstatus.OutcomeOf(run.Status).Status; got != tc.succeeded {
				t.Errorf("Succeeded is %s, want %s", got, tc.succeeded)
			}
			if got := meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionFinished); got != tc.finished {
				t.Errorf("Finished is %t, want %t", got, tc.finished)
			}
			if (run.Status.CompletionTime != nil) != tc.finished {
				t.Errorf("completionTime is %v", run.Status.CompletionTime)
			}
		})
	}
}

// A runner may be somebody else's: what it says last is cut to what the schema
// takes, or the operator could not write it down and the Run would never end.
func TestLastWordFitsTheSchema(t *testing.T) {
	long := func(n int) string { return string(make([]byte, n)) + "ä" }
	r := resultOf(task.Result{
		Committed: true, Reason: task.Reason(long(100)), Message: long(5000), Text: long(9000), Output: long(20000),
		Files: []task.File{{Path: long(300)}, {Path: "/workspace/a", Size: 1}},
	})
	if len(r.Reason) > task.MaxReason || len(r.Message) > task.MaxMessage || len(r.Text) > task.MaxText || len(r.Output) > task.MaxOutput {
		t.Errorf("it is %d, %d, %d and %d bytes", len(r.Reason), len(r.Message), len(r.Text), len(r.Output))
	}
	if diff := cmp.Diff([]v1alpha1.File{{Path: "/workspace/a", Size: 1}}, r.Files); diff != "" {
		t.Errorf("files -want +got:\n%s", diff)
	}
}
