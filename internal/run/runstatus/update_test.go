package runstatus_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// What the owner of an Agent should mend is an event of its own, once, though the
// work ended well.
func TestAWarningOfTheRunnerIsAnEventOfItsOwn(t *testing.T) {
	const warning = "Every call of toolset weather failed (3 of 3): lookup wether.example: no such host. Check spec.requests.baseURL of Toolset weather."
	ended := func(o metav1.ConditionStatus, reason string) v1alpha1.RunStatus {
		return v1alpha1.RunStatus{
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: o, Reason: reason}},
			Progress:   &v1alpha1.RunProgress{Result: &v1alpha1.Result{Reason: reason, Warning: warning + "\u202e\x1b"}},
		}
	}
	for is, o := range map[string]metav1.ConditionStatus{"Finished": metav1.ConditionTrue, "StepLimit": metav1.ConditionFalse} {
		got := runstatus.Transitions(v1alpha1.RunStatus{}, ended(o, is))
		if len(got) != 2 || got[0].Reason != is || got[1] != (runstatus.Transition{Kind: "Warning", Reason: "ResultWarning", Action: "Warn", Note: warning + `\u202e\x1b`}) {
			t.Errorf("%s is told as %+v", is, got)
		}
		if again := runstatus.Transitions(ended(o, is), ended(o, is)); len(again) != 0 {
			t.Errorf("%s is told again as %+v", is, again)
		}
	}
}

// People are told once, when something changed that they may have to act upon.
func TestTransitions(t *testing.T) {
	status := func(o metav1.ConditionStatus, reason, message string) v1alpha1.RunStatus {
		return v1alpha1.RunStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: o, Reason: reason, Message: message}}}
	}
	unknown := metav1.ConditionUnknown
	question := func(text string) v1alpha1.RunStatus {
		pending := []v1alpha1.PendingRequest{{ID: "s1c1", Kind: "Question", Question: "Which?", AskedAt: &metav1.Time{Time: time.Unix(1000, 0)}}}
		s := status(unknown, "AwaitingAnswer", decisions.PendingMessage("x", pending, strings.Fields(text)))
		s.Attempt = &v1alpha1.Attempt{Number: 2, StartedAt: metav1.NewTime(time.Unix(2000, 0))}
		s.Progress = &v1alpha1.RunProgress{Pending: pending}
		return s
	}
	cases := map[string]struct {
		before, after v1alpha1.RunStatus
		want          string
	}{
		"the end, well":            {status(unknown, "Running", ""), status(metav1.ConditionTrue, "Finished", "done"), "Normal Finished"},
		"the end, badly":           {status(unknown, "Running", ""), status(metav1.ConditionFalse, "StepLimit", "why"), "Warning StepLimit"},
		"something is missing":     {status(unknown, "Starting", ""), status(unknown, "SecretMissing", "which"), "Warning SecretMissing"},
		"the same is missing":      {status(unknown, "SecretMissing", "which"), status(unknown, "SecretMissing", "which"), ""},
		"somebody is asked":        {status(unknown, "Running", ""), status(unknown, "AwaitingAnswer", "which?"), "Normal AwaitingAnswer"},
		"and something more":       {status(unknown, "AwaitingAnswer", "which?"), status(unknown, "AwaitingAnswer", "and?"), "Normal AwaitingAnswer"},
		"a Decision was refused":   {question(""), question("x.s1c1"), ""},
		"the next attempt asks it": {status(unknown, "Running", ""), question(""), ""},
		"it goes on by itself":     {status(unknown, "Pending", ""), status(unknown, "Starting", ""), ""},
		"it is at work":            {status(unknown, "Starting", ""), status(unknown, "Running", ""), ""},
		"a note on a finished one": {status(metav1.ConditionTrue, "Finished", "done"), status(metav1.ConditionTrue, "Finished", "done; kept"), "Normal Kept"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, e := range runstatus.Transitions(tc.before, tc.after) {
				got += e.Kind + " " + e.Reason
			}
			if got != tc.want {
				t.Errorf("told %q, want %q", got, tc.want)
			}
		})
	}
}
