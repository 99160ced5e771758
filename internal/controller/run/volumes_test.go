package run

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// mishaps are what befalls volumes and sidecars, beside what befalls pods.
var mishaps = []func(c *cluster, n int){
	func(c *cluster, _ int) { c.claim = nil }, // somebody deletes it
	func(c *cluster, _ int) { claimIsDeleted(c) },
	func(c *cluster, _ int) { c.trouble = "FailedMount: no volume" },
	func(c *cluster, _ int) { c.trouble = "" },
	func(c *cluster, n int) { fetchFails(n, 69)(c) },
	func(c *cluster, n int) { fetchFails(n, 78)(c) },
	func(c *cluster, n int) { sidecarsRun(n)(c) },
	func(c *cluster, n int) { mounting("token", "/var/run/cloud")(c.pod(n)) },
}

// Whatever befalls its pods and its volume, a Run settles, its volume is never
// taken from a living pod, and in the end nothing of it stays.
func TestEveryRunWithAVolumeSettlesAndLeavesNothing(t *testing.T) {
	for seed := range gen.Seeds(1000) {
		r := rand.New(rand.NewPCG(seed, 4))
		c := newClusterOf(t, gen.Run(), gen.Agent(gen.Coder, gen.Durable), gen.Toolsets())
		for i := 0; c.run.Status.CompletionTime == nil; i++ {
			if i == 3000 {
				t.Fatalf("seed %d: the Run does not settle: %s", seed, sentence(reasonOf(c.run), messageOf(c.run)))
			}
			if i > 2000 {
				c.run.Spec.DesiredState = v1alpha1.DesiredStopped // people's patience ends
			}
			mishap(c, r)
			frees(t, seed, c)
			live(t, seed, c)
		}
		c.now = c.now.Add(48 * time.Hour)
		for range 10 {
			frees(t, seed, c)
			live(t, seed, c)
		}
		if c.claim != nil || len(c.pods) > 0 {
			t.Fatalf("seed %d: %d pods stay, and the claim %v", seed, len(c.pods), c.claim)
		}
	}
}

// mishap lets something happen, or nothing.
func mishap(c *cluster, r *rand.Rand) {
	a := c.run.Status.Attempt
	switch r.IntN(6) {
	case 0, 1:
		befall(c, r)
	case 2:
		if a != nil && a.PodUID != "" && c.pods[a.Pod] != nil {
			mishaps[r.IntN(len(mishaps))](c, int(a.Number))
		}
	}
}

// frees checks that no living pod loses its volume.
func frees(t *testing.T, seed uint64, c *cluster) {
	t.Helper()
	if decide(c.observed()).deleteVolume == nil {
		return
	}
	for _, pod := range c.pods {
		if runnerpod.IsAlive(pod) {
			t.Fatalf("seed %d: the volume of the living pod %s goes", seed, pod.Name)
		}
	}
}
