package run

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// An attempt is judged by its runner, and the next one begins when nothing of its
// pod can touch the files any more.
func TestTheNextAttemptWaitsForThePodToEnd(t *testing.T) {
	cases := map[string]struct {
		ends func(*cluster)
	}{
		"one that was lost": {func(c *cluster) { exits(1, 137)(c) }},
		"one that left to wait": {func(c *cluster) {
			reports(1, awaits("AwaitingApproval", approval("s3c1", hour)), leaves(task.ReasonWaiting))(c)
			exits(1, 75)(c)
			approves("s3c1")(c)
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, gen.Run(), gen.Agent(onVolume))
			c.begin()
			starts(1)(c)
			reports(1, begun)(c)
			c.step()
			tc.ends(c)
			pod := c.pod(1)
			over := pod.Status.Phase
			pod.Status.Phase = corev1.PodRunning
			for range 5 {
				c.now = c.now.Add(second)
				c.step()
			}
			if a := c.run.Status.Attempt; a.Number != 1 || reasonOf(c.run) == v1alpha1.ReasonRunning {
				t.Errorf("attempt %d begins while the sandbox of the first still runs (%s)", a.Number, reasonOf(c.run))
			}
			c.pod(1).Status.Phase = over
			for range 5 {
				c.now = c.now.Add(minute)
				c.step()
			}
			if n := c.run.Status.Attempt.Number; n != 2 {
				t.Errorf("attempt %d when the pod has ended", n)
			}
		})
	}
}
