package workflowrun

import (
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// A backup that is restored with its status, or a label that is set later, stops no Run
// of a workflow that has begun.
func TestAMarkOfABackupToolStopsNoRunThatHasBegun(t *testing.T) {
	c := newCluster(whole(t, pipeline))
	for range 3 {
		c.step()
	}
	c.run.Labels = map[string]string{"velero.io/restore-name": "nightly"}
	c.step()
	if is := runstatus.OutcomeOf(c.run.Status); is.Settles() || is.Reason == v1alpha1.ReasonRestored {
		t.Errorf("the Run is %s: %s", is.Reason, is.Message)
	}
}
