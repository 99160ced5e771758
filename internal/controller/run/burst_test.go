package run

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A runner reports what became of its last decisions only, so it is sent no more
// at once than it can report.
func TestARunnerIsSentNoMoreDecisionsThanItCanReport(t *testing.T) {
	s := state{run: gen.Run(func(r *v1alpha1.Run) {
		r.Status.Attempt = &v1alpha1.Attempt{Number: 1}
		r.Status.Progress = &v1alpha1.RunProgress{Attempt: 1}
	}), now: gen.Noon}
	for n := range 40 {
		s.decisions = append(s.decisions, v1alpha1.Decision{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m%d", n)},
			Spec:       v1alpha1.DecisionSpec{Run: s.run.Name, Type: v1alpha1.DecisionMessage, Value: "go on", By: "ann"},
		})
	}
	if told := pendingDecisions(s, task.Signals{}); len(told) > task.MaxDecided/2 {
		t.Errorf("it is told %d at once and can tell of %d", len(told), task.MaxDecided)
	}
}

// A message is heard when the agent goes on. One that waits for a person does not
// before that person is heard, however much others say to it.
func TestMessagesKeepNoDecisionFromTheRunner(t *testing.T) {
	s := state{run: gen.Run(func(r *v1alpha1.Run) {
		r.Status.Attempt = &v1alpha1.Attempt{Number: 1}
		r.Status.Progress = &v1alpha1.RunProgress{Attempt: 1, Pending: []v1alpha1.PendingRequest{approval("s3c1", hour)}}
	}), now: gen.Noon}
	for n := range 3 {
		s.decisions = append(s.decisions, v1alpha1.Decision{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m%d", n), CreationTimestamp: metav1.NewTime(gen.Noon)},
			Spec:       v1alpha1.DecisionSpec{Run: s.run.Name, Type: v1alpha1.DecisionMessage, Value: strings.Repeat("x", 4096), By: "eve"},
		})
	}
	s.decisions = append(s.decisions, v1alpha1.Decision{
		ObjectMeta: metav1.ObjectMeta{Name: "x." + requestFor("s3c1"), CreationTimestamp: metav1.NewTime(gen.Noon.Add(second))},
		Spec:       v1alpha1.DecisionSpec{Run: s.run.Name, Request: requestFor("s3c1"), Type: v1alpha1.DecisionApprove, By: "ann"},
	})
	if told := pendingDecisions(s, task.Signals{}); len(told) == 0 || told[0].Request != requestFor("s3c1") {
		t.Errorf("it is told %d decisions, and not what it waits for", len(told))
	}
}
