package cli

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gen"
)

func TestARunThatCannotBeStoppedDoesNotKeepOthersFromIt(t *testing.T) {
	ended := namedRun("ended", "Finished", func(r *v1alpha1.Run) { r.Status.CompletionTime = &metav1.Time{Time: gen.Noon} })
	s := newSession(t, ended, namedRun("fix", "Running"))
	if code := s.run(t, "stop", "ended", "missing", "fix"); code != exitError {
		t.Errorf("exit code %d: %s", code, s.text())
	}
	var run v1alpha1.Run
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: gen.Namespace, Name: "fix"}, &run); err != nil {
		t.Fatal(err)
	}
	if run.Spec.DesiredState != v1alpha1.DesiredStopped {
		t.Errorf("the desired state of fix is %q", run.Spec.DesiredState)
	}
	for _, want := range []string{"Error: run ended has ended", "Error: run missing not found"} {
		if !strings.Contains(s.err.String(), want) {
			t.Errorf("does not say %q: %s", want, s.err.String())
		}
	}
}
