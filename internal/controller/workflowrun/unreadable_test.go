package workflowrun

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// A Run whose revision this operator does not understand waits for an operator that
// does, and is not stopped, restarted or half understood meanwhile.
func TestARunWaitsForAnOperatorThatReadsItsRevision(t *testing.T) {
	cases := map[string]struct {
		version int
		desired v1alpha1.DesiredState
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		"stored by a newer operator": {
			3, v1alpha1.DesiredRunning, metav1.ConditionUnknown, v1alpha1.ReasonRevisionUnsupported,
			"Cannot read the revision of Workflow release that this Run started with: the stored revision has version 3, of a newer operator; this operator reads versions up to 1. Upgrade the operator: the Run then continues",
		},
		"and it is to stop": {3, v1alpha1.DesiredStopped, metav1.ConditionFalse, v1alpha1.ReasonStopped, "Stopped by spec.desiredState"},
		"stored by an operator that is too old": {
			0, v1alpha1.DesiredRunning, metav1.ConditionFalse, v1alpha1.ReasonRevisionUnsupported,
			"Cannot read the revision of Workflow release that this Run started with: the stored revision has version 0, of an older operator; this operator reads versions from 1. Create a new Run",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := begun(t, pipeline)
			was := c.version
			c.version, c.unsupported = nil, &stored.UnsupportedError{What: "stored revision", Version: tc.version, Oldest: 1, Newest: 1}
			wants(tc.desired)(c)
			c.step()
			got := runstatus.OutcomeOf(c.run.Status)
			if got.Status != tc.status || got.Reason != tc.reason || got.Message != tc.message {
				t.Errorf("the Run is %s %s: %s", got.Status, got.Reason, got.Message)
			}
			if tc.status != metav1.ConditionUnknown {
				return
			}
			if is := c.state("x-a"); is != v1alpha1.DesiredRunning {
				t.Errorf("x-a is to be %s", is)
			}
			c.version, c.unsupported = was, nil
			c.step()
			if got := runstatus.OutcomeOf(c.run.Status); got.Reason != v1alpha1.ReasonRunning {
				t.Errorf("after the upgrade the Run is %s: %s", got.Reason, got.Message)
			}
		})
	}
}
