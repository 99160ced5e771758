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

// The default TTL of the installation deletes what nobody asked to keep. Pods and the volume that
// the Agent retains for longer keep their Run.
func TestTheDefaultTTLDoesNotShortenRetention(t *testing.T) {
	const hour, week = time.Hour, 7 * 24 * time.Hour
	retained := func(pod, volume v1alpha1.Duration) *v1alpha1.Agent {
		return gen.Agent(gen.Durable, func(a *v1alpha1.Agent) { a.Spec.Retention.Pod, a.Spec.Retention.Volume = pod, &volume })
	}
	own := func(r *v1alpha1.Run) { r.Spec.TTLSecondsAfterFinished = new(int32(7 * 24 * 3600)) }
	cases := map[string]struct {
		run      *v1alpha1.Run
		agent    *v1alpha1.Agent
		after    time.Duration
		deletes  bool
		wakes    time.Duration
		podsLeft bool
	}{
		"before the TTL":                      {gen.Run(), gen.Agent(), week - hour, false, hour, false},
		"after the TTL":                       {gen.Run(), gen.Agent(), week, true, 0, false},
		"the pod is retained for longer":      {gen.Run(), retained("240h", "1h"), 2 * week / 2, false, 72 * hour, true},
		"the volume is retained for longer":   {gen.Run(), retained("1h", "240h"), week, false, 72 * hour, false},
		"the volume is about to go":           {gen.Run(), retained("1h", "1h"), week, false, time.Minute, false},
		"a TTL of the Run shortens retention": {gen.Run(own), retained("240h", "240h"), week, true, 72 * hour, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, tc.run, tc.agent)
			c.begin()
			starts(1)(c)
			reports(1, commits(v1alpha1.ReasonFinished, ""))(c)
			exits(1, 0)(c)
			c.step()
			if !tc.podsLeft {
				clear(c.pods)
			}
			c.now = c.run.Status.CompletionTime.Add(tc.after)
			s := c.observed()
			s.defaultTTL = week
			if p := decide(s); p.deleteRun != tc.deletes || p.wake != tc.wakes {
				t.Errorf("the Run is deleted: %t, reconciled again in %s, want %t, %s", p.deleteRun, p.wake, tc.deletes, tc.wakes)
			}
		})
	}
}
