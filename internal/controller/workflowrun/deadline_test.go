package workflowrun

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// A Run with a deadline is looked at when it passes, and neither before nor again and again after it.
func TestARunIsLookedAtWhenItsDeadlinePasses(t *testing.T) {
	unbegun := func(t *testing.T) *cluster { t.Helper(); return newCluster(whole(t, pipeline)) }
	working := func(t *testing.T) *cluster { t.Helper(); return begun(t, pipeline) }
	passed := func(d time.Duration) func(*cluster) {
		return func(c *cluster) { c.now = c.run.CreationTimestamp.Add(d) }
	}
	none := func(*cluster) {}
	for name, tc := range map[string]struct {
		begin func(*testing.T) *cluster
		do    func(*cluster)
		want  time.Duration
	}{
		"a Run before its start":         {unbegun, none, time.Hour},
		"a Run that waits to be resumed": {unbegun, wants(v1alpha1.DesiredPaused), time.Hour},
		"a Run whose children work":      {working, passed(0), time.Hour},
		"some time later":                {working, passed(20 * time.Minute), 40 * time.Minute},
		"a moment before, a second":      {working, passed(time.Hour - time.Millisecond), time.Second},
		"a Run that its deadline ends":   {working, passed(time.Hour), 0},
		"a Run that ends long after it":  {working, passed(2 * time.Hour), 0},
		"a Run that ends now":            {unbegun, wants(v1alpha1.DesiredStopped), 0},
		"a Run without a deadline":       {working, func(c *cluster) { c.run.Spec.Limits = nil }, 0},
		"a Run that has finished":        {working, func(c *cluster) { c.run.Status.CompletionTime = &metav1.Time{Time: c.now} }, 0},
		"a Run that is being deleted":    {working, func(c *cluster) { c.run.DeletionTimestamp = &metav1.Time{Time: c.now} }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := tc.begin(t)
			hour := v1alpha1.Duration("1h")
			c.run.Spec.Limits, c.run.Spec.TTLSecondsAfterFinished = &v1alpha1.Limits{Deadline: &hour}, nil
			tc.do(c)
			if got := decide(c.observed()).wake; got != tc.want {
				t.Errorf("it is looked at again after %s, want %s", got, tc.want)
			}
		})
	}
}
