package runstatus_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// A Run that waits for the operator has a message, and no request failed.
func TestANewRunHasNoProblem(t *testing.T) {
	status := v1alpha1.RunStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReconciling, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPending, Message: "Waiting for the operator"}}}
	if runstatus.HasProblem(status) {
		t.Error("a new Run has a problem")
	}
	if status.ObservedGeneration = 1; !runstatus.HasProblem(status) {
		t.Error("a Run whose reconciliation failed has none")
	}
}
