package cli

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// used sets what a Run used: tokens in and out, and millionths of a dollar, or -1 without a price.
func used(steps, in, out, cost int64) func(*v1alpha1.Run) {
	return func(run *v1alpha1.Run) {
		run.Status.Progress = &v1alpha1.RunProgress{Model: "sonnet", Counts: v1alpha1.Counts{Steps: steps}}
		u := &run.Status.Progress.Usage
		u.InputTokens, u.OutputTokens, u.TotalTokens = in, out, in+out
		if cost >= 0 {
			u.CostMicroUSD, u.Cost = &cost, "some"
		}
	}
}

func (s *session) edit(t *testing.T, name string, mods ...func(*v1alpha1.Run)) {
	t.Helper()
	var run v1alpha1.Run
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: gen.Namespace, Name: name}, &run); err != nil {
		t.Fatal(err)
	}
	for _, mod := range mods {
		mod(&run)
	}
	s.update(t, &run)
}

func TestTreeShowsNodesAndChildRuns(t *testing.T) {
	_, objects := released()
	s := newSession(t, objects...)
	at := func(minutes int) *metav1.Time {
		return &metav1.Time{Time: gen.Noon.Add(time.Duration(minutes) * time.Minute)}
	}
	s.edit(t, "ship", func(run *v1alpha1.Run) {
		run.CreationTimestamp = *at(0)
		run.Status.Nodes = []v1alpha1.NodeStatus{
			{Name: "build", State: "Succeeded"},
			{Name: "gate", State: "Running", Reason: v1alpha1.ReasonAwaitingApproval, StartedAt: at(10)},
			{Name: "test", State: "Running"},
			{Name: "deploy", State: "Waiting"},
		}
	})
	s.edit(t, "ship-build", used(4, 1000, 20, 30_000), func(run *v1alpha1.Run) { run.Status.CompletionTime = at(3) })
	if code := s.run(t, "tree", "ship"); code != exit.OK {
		t.Fatal(s.text())
	}
	golden(t, "tree.txt", s.text())
}
