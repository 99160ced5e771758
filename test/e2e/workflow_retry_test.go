//go:build e2e

package e2e

import (
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// A workflow of six nodes failed in the fifth. Its Agent is corrected, and the Run is retried: two nodes run, and
// nothing that had succeeded happens again.
func TestAFailedWorkflowIsRetried(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, map[string]modeltest.Dialogue{"hand": hand, "mate": hand})
	limitSteps := func(json string) {
		t.Helper()
		agent := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "mate"}}
		if err := cluster.admin.Patch(t.Context(), agent, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"limits":{"steps":`+json+`}}}`))); err != nil {
			t.Fatal(err)
		}
	}
	limitSteps("1") // it calls its tool, and cannot answer
	s.workflow("voyage", `
nodes:
- {name: chart, agent: hand, prompt: chart}
- {name: load, agent: hand, prompt: load, dependsOn: [chart]}
- {name: crew, agent: hand, prompt: crew, dependsOn: [chart]}
- {name: paint, agent: hand, prompt: paint}
- {name: sail, agent: mate, prompt: "${{ nodes.load.text }}-${{ nodes.crew.text }}"}
- {name: land, agent: hand, prompt: "${{ nodes.sail.text }}-landed"}
output: {log: {cel: nodes.land.text}}
`)
	s.settles(s.start("voyage"), "False NodeFailed")
	s.graph("voyage", "chart Succeeded", "load Succeeded", "crew Succeeded", "paint Succeeded", "sail Failed StepLimit", "land NotReached NodeFailed")
	first := s.countEffects("")
	limitSteps("10")
	again := s.start("voyage", func(r *v1alpha1.Run) {
		r.Name, r.Spec.ContinueFrom = "voyage-2", &v1alpha1.ContinueFrom{Run: "voyage"}
	})
	ended := s.settles(again, "True Finished")
	if got := ended.Status.Progress.Result.Output; got != `{"log":"load-crew-landed"}` {
		t.Errorf("the output is %s", got)
	}
	for name, kid := range s.childrenByName("voyage-2") {
		ran := kid.Status.Attempt != nil
		if want := name == "voyage-2-sail" || name == "voyage-2-land"; ran != want || !ran && (!containsReason(kid, v1alpha1.ReasonReused) || kid.Status.Progress.Usage.TotalTokens != 0) {
			t.Errorf("Run %s ran: %v: %s", name, ran, succeeded(kid))
		}
	}
	want := maps.Clone(first)
	want["load-crew"]++
	want["load-crew-landed"]++
	if got := s.countEffects(""); !maps.Equal(got, want) {
		t.Errorf("what happened is %v, before the retry %v", got, first)
	}
	if from := ended.Status.ContinuedFrom; from == nil || !slices.Equal(from.Runs, []string{"voyage"}) || from.TotalTokens == 0 {
		t.Errorf("status.continuedFrom is %+v", from)
	}
}

func containsReason(run *v1alpha1.Run, reason string) bool {
	return slices.ContainsFunc(run.Status.Conditions, func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionSucceeded && c.Reason == reason })
}
