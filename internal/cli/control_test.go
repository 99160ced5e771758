package cli

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

func TestARunThatCannotBeStoppedDoesNotKeepOthersFromIt(t *testing.T) {
	ended := namedRun("ended", "Finished", func(r *v1alpha1.Run) { r.Status.CompletionTime = &metav1.Time{Time: gen.Noon} })
	s := newSession(t, ended, namedRun("fix", "Running"))
	if code := s.run(t, "stop", "ended", "missing", "fix"); code != exit.Error {
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
		if code := s.run(t, "resume", name); code != exit.Error || !strings.Contains(s.err.String(), want) || s.out.Len() > 0 {
			t.Errorf("%s: exit code %d, want %q in: %s", name, code, want, s.text())
		}
	}
}

// The runner matches messages to questions in the same way: questionFor in runner/internal/engine/approval/decisions.go.
func TestAMessageSaysWhatBecomesOfIt(t *testing.T) {
	const answers = "Run fix asks the question s2c1, and the message answers it\n"
	withoutQuestion, twoQuestions, atWork := runWithRequests(), runWithRequests(), asksWith("")
	pending := &withoutQuestion.Status.Progress.Pending
	*pending = slices.Delete(*pending, 1, 2)
	pending = &twoQuestions.Status.Progress.Pending
	*pending = append(*pending, v1alpha1.PendingRequest{ID: "s2c2", Kind: requests.KindQuestion, Question: "Which file?"})
	meta.FindStatusCondition(atWork.Status.Conditions, v1alpha1.ConditionSucceeded).Reason = v1alpha1.ReasonRunning
	for name, tc := range map[string]struct {
		run  *v1alpha1.Run
		text string
		want string
	}{
		"a question in words":              {asksWith(""), "Hurry.", answers},
		"a question beside other requests": {runWithRequests(), "Hurry.", answers},
		"a form that the message fits":     {asksWith(`{"type":"boolean"}`), "true", answers},
		"a form with a default":            {asksWith(`{"properties":{"n":{"default":1}},"required":["n"]}`), "{}", answers},
		"a question while others work":     {atWork, "Hurry.", "Run fix asks the question s2c1, and the message answers it as soon as all of the Run waits, unless the agent takes a turn before\n"},
		"a form that the message does not fit": {
			asksWith(`{"type":"boolean"}`), "Hurry.",
			"Run fix reads messages after its request s2c1 is decided: kubectl deckhand answer fix s2c1 TEXT -n team-a\n",
		},
		"several questions": {twoQuestions, "Hurry.", "Run fix reads messages after its requests are decided: kubectl deckhand pending fix -n team-a\n"},
		"no question":       {withoutQuestion, "Hurry.", "Run fix reads messages after its requests are decided: kubectl deckhand pending fix -n team-a\n"},
		"nothing":           {namedRun("fix", "Running"), "Hurry.", ""},
	} {
		s := newSession(t, tc.run)
		if code := s.run(t, "message", "fix", tc.text); code != exit.OK || s.err.String() != tc.want || len(decisionsOf(t, s)) != 1 {
			t.Errorf("%s: exit code %d, want %q in: %s", name, code, tc.want, s.text())
		}
	}
}

func TestAMessageToAWorkflowIsNotSent(t *testing.T) {
	s := newSession(t, namedRun("fix", "Running", func(r *v1alpha1.Run) { r.Spec.Agent, r.Spec.Workflow = "", "release" }))
	want := "run fix is of Workflow release, which has no agent that could read a message: send it to the Run of a node. To see them: kubectl deckhand tree fix -n team-a"
	if code := s.run(t, "message", "fix", "Hurry."); code != exit.Error || len(decisionsOf(t, s)) > 0 || !strings.Contains(s.err.String(), want) {
		t.Errorf("exit code %d, want %q in: %s", code, want, s.text())
	}
}
