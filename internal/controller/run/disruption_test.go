package run

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// fiveMinutes is a Run with limits.duration: 5m.
func fiveMinutes(r *v1alpha1.Run) {
	d := v1alpha1.Duration("5m")
	r.Spec.Limits = &v1alpha1.Limits{Duration: &d}
}

// isMarked is a pod that the cluster is about to delete, and says why: by the
// scheduler, the node controller or the pod garbage collector.
func isMarked(n int, reason string) func(*cluster) {
	return func(c *cluster) {
		c.pod(n).Status.Conditions = append(c.pod(n).Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.NewTime(c.now),
		})
	}
}

// failsFor is a pod whose kubelet ended it for a reason.
func failsFor(n int, reason string) func(*cluster) {
	return func(c *cluster) { c.pod(n).Status.Phase, c.pod(n).Status.Reason = corev1.PodFailed, reason }
}

func all(does ...func(*cluster)) func(*cluster) {
	return func(c *cluster) {
		for _, do := range does {
			do(c)
		}
	}
}

var disruptionStories = map[string]story{
	"operator-down": {
		title: "limits.duration passes while there is no operator: enforced when one is back",
		run:   fiveMinutes,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports, and hangs", reports(1)),
			at(10*second, "the operator is gone", operatorLeaves),
			at(1800*second, "it is back", operatorReturns),
		},
	},
	"operator-down-kubelet": {
		title: "while there is no operator the kubelet enforces the deadline of the pod",
		run:   fiveMinutes,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports, and hangs", reports(1)),
			at(10*second, "the operator is gone", operatorLeaves),
			at(460*second, "the kubelet ends x-1 at its activeDeadlineSeconds", all(exits(1, 137), failsFor(1, "DeadlineExceeded"))),
			at(1800*second, "the operator is back", operatorReturns),
		},
	},
	"operator-down-finished": {
		title: "a Run that finishes while there is no operator is finished, however late that is seen",
		run:   fiveMinutes,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(10*second, "the operator is gone", operatorLeaves),
			at(100*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(101*second, "x-1 exits 0", exits(1, 0)),
			at(1800*second, "the operator is back", operatorReturns),
		},
	},
	"operator-down-deadline": {
		title: "limits.deadline passes while there is no operator: enforced when one is back",
		run: func(r *v1alpha1.Run) {
			d := v1alpha1.Duration("1m")
			r.Spec.Limits = &v1alpha1.Limits{Deadline: &d}
		},
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(10*second, "the operator is gone", operatorLeaves),
			at(3600*second, "it is back", operatorReturns),
		},
	},
	"preempted": {
		title: "a pod that the scheduler preempts is replaced, charged to disruptions",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(5*second, "the scheduler preempts x-1", all(isMarked(1, corev1.PodReasonPreemptionByScheduler), isDeleted(1))),
			at(7*second, "x-1 exits 143", exits(1, 143)),
			at(8*second, "x-1 is gone", vanishes(1)),
			at(9*second, "x-2 runs", starts(2)),
			at(10*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(11*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"node-unreachable": {
		title: "a pod on a node that nobody reaches is not replaced before it is gone",
		agent: onVolume,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner begins to change things", reports(1, begun)),
			at(300*second, "the node controller deletes x-1, and no kubelet confirms it", all(isMarked(1, "DeletionByTaintManager"), isDeleted(1))),
			at(1500*second, "an administrator removes the node, and x-1 with it", vanishes(1)),
			at(1510*second, "x-2 runs", starts(2)),
			at(1520*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(1521*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"node-removed": {
		title: "a pod whose Node object is deleted is replaced, charged to disruptions",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(60*second, "the pod garbage collector ends x-1", all(isMarked(1, "DeletionByPodGC"), failsFor(1, ""))),
			at(61*second, "x-1 is gone", vanishes(1)),
			at(62*second, "x-2 runs", starts(2)),
			at(63*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(64*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"node-shut-down": {
		title: "a runner that exits with 0 because its node shuts down has not finished",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(60*second, "the node shuts down, and x-1 exits 0", all(exits(1, 0), failsFor(1, "Terminated"), isMarked(1, "TerminationByKubelet"))),
			at(62*second, "x-2 runs", starts(2)),
			at(63*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(64*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"runner-too-new": {
		title: "a runner of a newer protocol than the operator knows is refused, and its pod removed",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the operator goes back to an older version, and the runner reports in a newer protocol", reports(1, speaks(2))),
		},
	},
	"squatted-forever": {
		title: "names that other pods hold are skipped ten times",
		beats: []beat{
			at(0, "foreign pods are called x-1 to x-11", func(c *cluster) {
				for n := range 11 {
					isSquatted(n + 1)(c)
				}
			}),
		},
	},
	"account-missing": {
		title: "a missing ServiceAccount is waited for, and no attempt is burnt",
		beats: []beat{
			at(0, "the ServiceAccount is deleted", refuses(forbidden("error looking up service account team-a/deckhand-runner: serviceaccount \"deckhand-runner\" not found"))),
			at(30*second, "it is there", refuses(nil)),
			at(62*second, "x-1 runs", starts(1)),
			at(63*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(64*second, "x-1 exits 0", exits(1, 0)),
		},
	},
}

func TestStoriesOfDisruption(t *testing.T) { playStories(t, disruptionStories) }

// While the pod of an attempt exists there is no second one, whatever its node
// and its conditions say.
func TestNoSecondPodBesideOneThatCannotBeReached(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent())
	c.begin()
	all(starts(1), reports(1), isMarked(1, "DeletionByTaintManager"), isDeleted(1))(c)
	for range 400 {
		c.now = c.now.Add(10 * second)
		c.step()
		if len(c.pods) > 1 {
			t.Fatalf("after %s there are %d pods", c.now.Sub(gen.Noon), len(c.pods))
		}
	}
}
