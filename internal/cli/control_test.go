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

func TestARunThatIsNotPausedIsNotResumed(t *testing.T) {
	asks := runWithRequests()
	stopping := namedRun("stopping", "Stopping", func(r *v1alpha1.Run) { r.Spec.DesiredState = v1alpha1.DesiredStopped })
	old := namedRun("old", "Running", func(r *v1alpha1.Run) { r.Spec.DesiredState = "" })
	s := newSession(t, asks, stopping, old)
	for name, want := range map[string]string{
		"fix":      "run fix is not paused, and its reason is AwaitingApproval: see what it does with kubectl deckhand why fix -n team-a",
		"stopping": "run stopping is not paused but stopped",
		"old":      "run old is not paused",
	} {
		if code := s.run(t, "resume", name); code != exitError || !strings.Contains(s.err.String(), want) || s.out.Len() > 0 {
			t.Errorf("%s: exit code %d, want %q in: %s", name, code, want, s.text())
		}
	}
}

func TestAMessageThatWaitsForAnAnswerSaysSo(t *testing.T) {
	for name, tc := range map[string]struct {
		run  *v1alpha1.Run
		want string
	}{
		"a form":              {asksWith(`{"type":"boolean"}`), "Run fix reads messages after its request s2c1 is decided: kubectl deckhand answer fix s2c1 TEXT -n team-a\n"},
		"several requests":    {runWithRequests(), "Run fix reads messages after its request " + callID + " is decided: kubectl deckhand approve fix " + callID + " -n team-a\n"},
		"a question in words": {asksWith(""), "Run fix asks a question, so the message is its answer\n"},
		"nothing":             {namedRun("fix", "Running"), ""},
	} {
		s := newSession(t, tc.run)
		if code := s.run(t, "message", "fix", "Hurry."); code != exitOK || s.err.String() != tc.want || len(decisionsOf(t, s)) != 1 {
			t.Errorf("%s: exit code %d, want %q in: %s", name, code, tc.want, s.text())
		}
	}
}
