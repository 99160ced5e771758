//go:build e2e

package e2e

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A runner that was built with extensions does the work of an Agent that names
// its image: model, tool, layer, files and store are those of
// examples/custom-runner.
func TestCustomRunner(t *testing.T) {
	t.Parallel()
	s := &exampleFixture{testNamespace: newNamespace(t), runs: map[string]*v1alpha1.Run{}}
	for _, o := range read(t, "custom-runner/agent.yaml") {
		if img := os.Getenv("E2E_CUSTOM_RUNNER_IMAGE"); o.GetKind() == "Agent" && img != "" {
			s.set(o, img, "spec", "podTemplate", "runnerImage")
		}
		s.create(o)
	}
	run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "custom"}}
	s.runs["custom"] = s.await(run, "finishes", finished)
	if got, want := s.says("custom"), "Order 7: two lamps, for (hidden)."; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	// What the layer hides is nowhere: not in the status, and not in the log.
	log := s.log(t.Context(), "custom-1")
	s.lacks("the log", log, "0170 555 1234")
	s.has("the log", log, "Order 7: two lamps, for (hidden).")
	for _, e := range s.events("custom", step.EventRunStarted) {
		if !strings.Contains(string(e.Data), `"parrot"`) {
			t.Errorf("the model is not the parrot: %s", e.Data)
		}
	}
}

// A runner without an extension says what it has instead.
func TestCustomToolOfAnotherRunner(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("trivial", func(a *v1alpha1.Agent) { a.Spec.Tools = []v1alpha1.Tool{{Custom: "Orders"}} })
	got := message(p.ends(p.run("trivial"), "False Misconfigured"))
	if !strings.Contains(got, `no custom tool "Orders"`) || !strings.Contains(got, "podTemplate.runnerImage") {
		t.Errorf("it says %q", got)
	}
}
