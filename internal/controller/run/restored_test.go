package run

import (
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// A backup that is restored with its status, or a label that is set later, stops no Run
// that has an attempt.
func TestAMarkOfABackupToolStopsNoAttempt(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent())
	c.begin()
	c.run.Labels = map[string]string{"velero.io/restore-name": "nightly"}
	starts(1)(c)
	reports(1, commits("Finished", ""))(c)
	c.step()
	if got := reasonOf(c.run); got != v1alpha1.ReasonFinished {
		t.Errorf("the Run is %s: %s", got, messageOf(c.run))
	}
}
