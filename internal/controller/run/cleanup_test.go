package run

import (
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// A finished Run is reconciled a minute later only while its pod may still be active: all
// other pods are older, so the cache shows them.
func TestFinishedRunIsReconciledAgain(t *testing.T) {
	cases := map[string]struct {
		then func(*cluster)
		want time.Duration
	}{
		"its pod has not ended": {func(*cluster) {}, leaveGrace},
		"its pod has ended":     {exits(1, 0), runnerpod.DefaultRetention},
		"its pod is not there":  {func(c *cluster) { clear(c.pods) }, leaveGrace},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, gen.Run(), gen.Agent())
			c.begin()
			starts(1)(c)
			reports(1, commits(v1alpha1.ReasonFinished, ""))(c)
			c.step()
			if c.run.Status.CompletionTime == nil {
				t.Fatalf("the Run did not finish: %+v", c.run.Status)
			}
			tc.then(c)
			if got := decide(c.observed()).wake; got != tc.want {
				t.Errorf("it is reconciled again in %s, want %s", got, tc.want)
			}
		})
	}
}
