package workflowrun

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// The schema refuses a status with a reason that it does not know, for example of a
// child Run that a newer operator ended before a rollback.
func TestUnknownReasonOfAChildRunIsFailed(t *testing.T) {
	c := begun(t, pipeline)
	fails("x-a", "OfAnotherRelease", "The moon is full")(c)
	c.step()
	c.step()
	a := nodeStatus(c.run.Status.Nodes, "a")
	if a.State != v1alpha1.NodeFailed || a.Reason != v1alpha1.NodeReasonFailed {
		t.Errorf("node a is %+v", a)
	}
	if is := runstatus.OutcomeOf(c.run.Status); is.Reason != v1alpha1.ReasonNodeFailed || !strings.Contains(is.Message, "The moon is full") {
		t.Errorf("the Run is %+v", is)
	}
}
