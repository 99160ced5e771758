package outcome_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/outcome"
)

// People are told once, when something changed that they may have to act upon.
func TestTransitions(t *testing.T) {
	status := func(o metav1.ConditionStatus, reason, message string) v1alpha1.RunStatus {
		return v1alpha1.RunStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: o, Reason: reason, Message: message}}}
	}
	unknown := metav1.ConditionUnknown
	cases := map[string]struct {
		before, after v1alpha1.RunStatus
		want          string
	}{
		"the end, well":            {status(unknown, "Running", ""), status(metav1.ConditionTrue, "Finished", "done"), "Normal Finished"},
		"the end, badly":           {status(unknown, "Running", ""), status(metav1.ConditionFalse, "StepLimit", "why"), "Warning StepLimit"},
		"something is missing":     {status(unknown, "Starting", ""), status(unknown, "SecretMissing", "which"), "Warning SecretMissing"},
		"the same is missing":      {status(unknown, "SecretMissing", "which"), status(unknown, "SecretMissing", "which"), ""},
		"somebody is asked":        {status(unknown, "Running", ""), status(unknown, "AwaitingAnswer", "which?"), "Warning AwaitingAnswer"},
		"and something more":       {status(unknown, "AwaitingAnswer", "which?"), status(unknown, "AwaitingAnswer", "and?"), "Warning AwaitingAnswer"},
		"it goes on by itself":     {status(unknown, "Pending", ""), status(unknown, "Starting", ""), ""},
		"it is at work":            {status(unknown, "Starting", ""), status(unknown, "Running", ""), ""},
		"a note on a finished one": {status(metav1.ConditionTrue, "Finished", "done"), status(metav1.ConditionTrue, "Finished", "done; kept"), "Normal Kept"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, e := range outcome.Transitions(tc.before, tc.after) {
				got += e.Kind + " " + e.Reason
			}
			if got != tc.want {
				t.Errorf("told %q, want %q", got, tc.want)
			}
		})
	}
}
