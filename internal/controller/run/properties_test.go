package run

import (
	"cmp"
	"math/rand/v2"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// fates are what may befall the pod of an attempt, whatever its state.
var fates = []func(n int) func(*cluster){
	starts,
	func(n int) func(*cluster) { return reports(n) },
	func(n int) func(*cluster) { return reports(n, begun) },
	func(n int) func(*cluster) { return reports(n, awaits("AwaitingAnswer", question("s3c1", "?"))) },
	func(n int) func(*cluster) { return reports(n, acts("x.s3c1")) },
	func(int) func(*cluster) { return answers("s3c1", "main") },
	func(n int) func(*cluster) { return reports(n, commits("Finished", "")) },
	func(n int) func(*cluster) { return reports(n, commits("ModelUnavailable", "HTTP 503")) },
	func(n int) func(*cluster) { return reports(n, commits("nonsense", "")) },
	func(n int) func(*cluster) { return exits(n, 0) },
	func(n int) func(*cluster) { return exits(n, 1) },
	func(n int) func(*cluster) { return exits(n, 77) },
	func(n int) func(*cluster) { return exits(n, 137, oomKilled) },
	func(n int) func(*cluster) { return exits(n, 143) },
	func(n int) func(*cluster) {
		return exits(n, 78, says(n, task.Result{Reason: task.ReasonSecretMissing}))
	},
	func(n int) func(*cluster) {
		return exits(n, 0, says(n, task.Result{Committed: true, Reason: task.ReasonFinished}))
	},
	func(n int) func(*cluster) { return waits(n, "ImagePullBackOff", "") },
	func(n int) func(*cluster) { return waits(n, "CreateContainerConfigError", "") },
	isUnschedulable, isEvicted, vanishes, isDisowned, isTakenOver,
	func(int) func(*cluster) { return stops },
	func(int) func(*cluster) { return wants(v1alpha1.DesiredPaused) },
	func(int) func(*cluster) { return wants(v1alpha1.DesiredRunning) },
	func(n int) func(*cluster) {
		return reports(n, begun, awaits("AwaitingApproval", approval("s4c1", hour)))
	},
	func(n int) func(*cluster) {
		return reports(n, awaits("AwaitingApproval", approval("s4c1", hour)), leaves(task.ReasonWaiting))
	},
	func(n int) func(*cluster) { return reports(n, leaves(task.ReasonPaused)) },
	func(n int) func(*cluster) { return exits(n, 75) },
	func(int) func(*cluster) { return approves("s4c1") },
	func(int) func(*cluster) { return denies("s4c1") },
	func(int) func(*cluster) { return refuses(forbidden("exceeded quota")) },
	func(int) func(*cluster) { return refuses(errDown) },
	func(int) func(*cluster) { return refuses(nil) },
	func(int) func(*cluster) { return operatorRestarts },
}

// befall lets something happen to the current attempt's pod, or nothing where
// it has none.
func befall(c *cluster, r *rand.Rand) {
	n := 1
	if a := c.run.Status.Attempt; a != nil {
		n = int(a.Number)
	}
	pod := c.pods[runnerpod.Name(c.run.Name, int32(n))]
	if a := c.run.Status.Attempt; pod == nil || a != nil && a.PodUID != string(pod.UID) {
		if r.IntN(4) > 0 {
			c.refuse = nil
		}
		if r.IntN(4) == 0 && c.run.Spec.DesiredState == v1alpha1.DesiredPaused {
			wants(v1alpha1.DesiredRunning)(c)
		}
		return
	}
	fates[r.IntN(len(fates))](n)(c)
}

// durability gives every other Agent a volume.
func durability(seed uint64) func(*v1alpha1.Agent) {
	if seed%2 == 0 {
		return mayAskPeople
	}
	return onVolume
}

// Whatever befalls its pods, a Run settles, and a settled Run stays still.
func TestEveryRunSettles(t *testing.T) {
	for seed := range gen.Seeds(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := newCluster(t, gen.Run(), gen.Agent(durability(seed)))
		for i := 0; c.run.Status.CompletionTime == nil; i++ {
			if i == 3000 {
				t.Fatalf("seed %d: the Run does not settle: %s", seed, sentence(reasonOf(c.run), messageOf(c.run)))
			}
			if r.IntN(3) == 0 {
				befall(c, r)
			}
			live(t, seed, c)
		}
		settled := runstatus.OutcomeOf(c.run.Status)
		for range 10 {
			live(t, seed, c)
		}
		if is := runstatus.OutcomeOf(c.run.Status); is.Status != settled.Status || is.Reason != settled.Reason {
			t.Fatalf("seed %d: a settled Run moved from %s to %s", seed, settled.Reason, is.Reason)
		}
	}
}

// live lets the controller take one step, checks what must hold after every
// single one, and lets time pass.
func live(t *testing.T, seed uint64, c *cluster) {
	t.Helper()
	before := c.run.Status.DeepCopy()
	p := c.step()
	checkInvariants(t, seed, c, before)
	c.now = c.now.Add(cmp.Or(p.wake, time.Second))
}

// checkInvariants holds after every single step.
func checkInvariants(t *testing.T, seed uint64, c *cluster, before *v1alpha1.RunStatus) {
	t.Helper()
	live := 0
	for _, pod := range c.pods {
		if runnerpod.IsAlive(pod) && pod.UID != namesake {
			live++
		}
	}
	if live > 1 {
		t.Fatalf("seed %d: %d live pods", seed, live)
	}
	is := runstatus.OutcomeOf(c.run.Status)
	if is.Status == metav1.ConditionTrue && c.observed().committed() == nil {
		t.Fatalf("seed %d: success without a committed result", seed)
	}
	if (is.Status == metav1.ConditionUnknown) != (c.run.Status.CompletionTime == nil) {
		t.Fatalf("seed %d: Succeeded is %s, completionTime %v", seed, is.Status, c.run.Status.CompletionTime)
	}
	if before.Attempt != nil && c.run.Status.Attempt.Number < before.Attempt.Number {
		t.Fatalf("seed %d: attempts go backwards", seed)
	}
	if before.CompletionTime != nil && !before.CompletionTime.Equal(c.run.Status.CompletionTime) {
		t.Fatalf("seed %d: completionTime moved", seed)
	}
	if f, d := c.run.Status.Failures, c.run.Status.Disruptions; f > *c.run.Spec.MaxRetries || d > *c.run.Spec.MaxDisruptions {
		t.Fatalf("seed %d: %d failures and %d disruptions are over budget", seed, f, d)
	}
}

// Work that may have changed something is never started a second time.
func TestEffectsAreNotRepeated(t *testing.T) {
	for seed := range gen.Seeds(1000) {
		r := rand.New(rand.NewPCG(seed, 2))
		c := newCluster(t, gen.Run(), gen.Agent())
		c.begin()
		starts(1)(c)
		reports(1, begun)(c)
		for range 200 {
			p := c.step()
			c.now = c.now.Add(max(p.wake, time.Second))
			if c.run.Status.CompletionTime == nil && r.IntN(2) == 0 {
				befall(c, r)
			}
		}
		if n := c.run.Status.Attempt.Number; n > 1 {
			t.Fatalf("seed %d: attempt %d after effects had begun", seed, n)
		}
	}
}

// Deciding again after acting changes nothing: what was done is seen.
func TestDecidingTwiceIsDecidingOnce(t *testing.T) {
	for seed := range gen.Seeds(500) {
		r := rand.New(rand.NewPCG(seed, 3))
		c := newCluster(t, gen.Run(), gen.Agent())
		for range 40 {
			befall(c, r)
			for range 10 { // to rest: a step may make room for the next
				before := c.run.Status.DeepCopy()
				p := c.step()
				if deed(p) == "" && gocmp.Equal(*before, c.run.Status) {
					break
				}
			}
			again := decide(c.observed())
			if did := deed(again); did != "" && c.refuse == nil {
				t.Fatalf("seed %d: at rest, and still %s", seed, did)
			}
			c.now = c.now.Add(time.Duration(r.IntN(20)) * time.Second)
		}
	}
}

// The order in which the cluster lists pods does not matter.
func TestOrderOfPodsDoesNotMatter(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent())
	c.begin()
	starts(1)(c)
	exits(1, 1)(c)
	c.now = c.now.Add(time.Minute)
	c.step()
	c.step()
	s := c.observed()
	want := decide(s)
	s.pods = []corev1.Pod{s.pods[1], s.pods[0]}
	if diff := gocmp.Diff(want, decide(s), gocmp.AllowUnexported(plan{})); diff != "" {
		t.Errorf("decide() depends on the order of pods:\n%s", diff)
	}
}

func TestPodNames(t *testing.T) {
	long := "a-run-with-a-name-as-long-as-a-label-may-be-which-is-63-letters"
	cases := map[string]struct {
		run     string
		attempt int32
		want    string
	}{
		"short names are kept":             {"fix-x7k2p", 3, "fix-x7k2p-3"},
		"long ones are cut and told apart": {long, 12, long[:51] + "-" + task.Hash([]byte(long))[:8] + "-12"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := runnerpod.Name(tc.run, tc.attempt)
			if got != tc.want || len(got) > 63 {
				t.Errorf("podName() = %q (%d characters), want %q", got, len(got), tc.want)
			}
		})
	}
	if runnerpod.Name(long, 1) == runnerpod.Name(long[:62]+"t", 1) {
		t.Error("two Runs share a pod name")
	}
}
