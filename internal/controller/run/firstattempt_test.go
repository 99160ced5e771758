package run

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// operatorRestarts ends the operator, and starts another that knows nothing of it.
func operatorRestarts(c *cluster) { c.unrecorded = nil }

// reportsAs is a report of a pod that no longer exists: its container lives on, and the API server
// has its token in a cache.
func reportsAs(podUID string, mods ...func(*v1alpha1.RunProgress)) func(*cluster) {
	return func(c *cluster) {
		if c.run.Status.Attempt != nil || c.run.Status.Progress != nil {
			return // fenced
		}
		p := &v1alpha1.RunProgress{Version: task.Version, Attempt: 1, PodUID: podUID, Sequence: c.now.UnixMilli()}
		for _, mod := range mods {
			mod(p)
		}
		c.run.Status.Progress = p
	}
}

// What becomes of a first attempt that is not in the status yet.
var firstAttemptStories = map[string]story{
	"short": {
		title: "a Run of less than two seconds is written when it ends",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(1*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(2*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"lost-unrecorded": {
		title: "a pod that is lost before it was recorded counts as lost",
		beats: []beat{
			at(1*second, "x-1 is deleted", vanishes(1)),
			at(3*second, "x-2 runs", starts(2)),
			at(4*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(5*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"restart-unrecorded": {
		title: "an operator that starts finds the pod that the last one created",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(1*second, "the operator starts again", operatorRestarts),
			at(3*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(4*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"restart-committed": {
		title: "an operator that starts finds the result of a pod that the last one created",
		beats: []beat{
			at(1*second, "the operator is gone", all(operatorRestarts, operatorLeaves)),
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(3*second, "x-1 exits 0", exits(1, 0)),
			at(60*second, "the operator is back", operatorReturns),
		},
	},
	"restart-lost": {
		title: "without a report, a pod that was lost while no operator knew of it is created again",
		beats: []beat{
			at(1*second, "the operator starts again, and x-1 is deleted", all(operatorRestarts, vanishes(1))),
			at(3*second, "x-1 runs", starts(1)),
			at(4*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(5*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"restart-lost-late": {
		title: "a pod that was lost while no operator knew of it, and had begun to change things, ends the Run",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(1*second, "the operator is gone", all(operatorRestarts, operatorLeaves)),
			at(2*second, "the runner begins to change things, and commits", reports(1, begun, commits("Finished", ""))),
			at(3*second, "x-1 is deleted", vanishes(1)),
			at(60*second, "the operator is back", operatorReturns),
		},
	},
	"restart-lost-early": {
		title: "a pod that was lost while no operator knew of it, and had reported, counts as lost",
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(1*second, "the operator is gone", all(operatorRestarts, operatorLeaves)),
			at(2*second, "the runner reports", reports(1)),
			at(3*second, "x-1 is deleted", vanishes(1)),
			at(60*second, "the operator is back", operatorReturns),
			at(62*second, "x-2 runs", starts(2)),
			at(63*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(64*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"restart-twice-created": {
		title: "of two pods of attempt 1 the first that reports is the attempt",
		beats: []beat{
			at(1*second, "the operator starts again, and x-1 is deleted by force", all(operatorRestarts, vanishes(1))),
			at(2*second, "the container of the deleted pod begins to change things", reportsAs("uid-x-1", begun)),
			at(2*second, "the runner of the second pod is fenced", reports(1, begun, commits("Finished", ""))),
		},
	},
	"namesake-reports": {
		title: "what the pod of an earlier Run of the name reports is removed",
		beats: []beat{
			at(0, "the pod of an earlier Run is called x-1, and reports a result to this one", all(isNamesakes(1), reportsAs(namesake, begun, commits("Finished", "")))),
			at(2*second, "x-2 runs", starts(2)),
			at(3*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(4*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"paused-unrecorded": {
		title: "a Run that is paused before its first attempt is recorded holds in its pod",
		beats: []beat{
			at(1*second, "a person pauses the Run", wants(v1alpha1.DesiredPaused)),
			at(2*second, "x-1 runs", starts(1)),
			at(3*second, "the runner holds", reports(1, awaits("Paused"))),
			at(9*second, "a person resumes the Run", wants(v1alpha1.DesiredRunning)),
			at(10*second, "the runner goes on", reports(1, awaits(""))),
			at(11*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(12*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"crash-unrecorded": {
		title: "a pod that fails before it was recorded is tried once more",
		beats: []beat{
			at(1*second, "x-1 exits 1", exits(1, 1)),
			at(20*second, "x-2 runs", starts(2)),
			at(21*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(22*second, "x-2 exits 0", exits(2, 0)),
		},
	},
}

// namesake is the UID of the pod of an earlier Run, which had the same name.
const namesake = "uid-of-a-namesake"

// isNamesakes has the pod of attempt n of an earlier Run exist under its name.
func isNamesakes(n int) func(*cluster) {
	return func(c *cluster) {
		earlier := gen.Run(func(r *v1alpha1.Run) {
			r.UID = "uid-of-an-earlier-run"
			r.Status.Attempt = &v1alpha1.Attempt{Number: 1, Pod: fmt.Sprintf("%s-%d", c.run.Name, n)}
		})
		pod := runnerpod.New(runnerpod.Input{Run: earlier, Revision: c.revision, Attempt: 1})
		pod.UID = namesake
		c.pods[pod.Name] = pod
	}
}

func TestStoriesOfFirstAttempts(t *testing.T) { playStories(t, firstAttemptStories) }

// losses may befall a first attempt before it is recorded.
var losses = []func(*cluster){
	operatorRestarts,
	func(c *cluster) { delete(c.pods, "x-1") },
	reportsAs("uid-x-1", begun),
	reportsAs("uid-of-another", commits("Finished", "")),
	func(c *cluster) {
		if pod := c.pods["x-1"]; pod != nil && pod.UID != namesake {
			reports(1, begun)(c)
		}
	},
	func(c *cluster) {
		if c.pods["x-1"] == nil {
			isNamesakes(1)(c)
		}
	},
	func(c *cluster) {
		if pod := c.pods["x-1"]; pod != nil && pod.UID == namesake {
			reportsAs(namesake, begun, commits("Finished", ""))(c)
		}
	},
}

// beganIn returns the UID of the pod that reported that effects have begun, whose journal is lost
// with it; empty: none.
func beganIn(run *v1alpha1.Run) string {
	a, p := run.Status.Attempt, run.Status.Progress
	if p != nil && p.Effects != "" && p.PodUID != namesake && (a == nil || a.VolumeClaim == "") {
		return p.PodUID
	}
	return ""
}

// Whatever is lost before the first attempt is recorded: effects begin in one pod, and a result is
// believed only of a pod that the operator has.
func TestEffectsOfAnUnrecordedAttemptAreNotRepeated(t *testing.T) {
	for seed := range gen.Seeds(2000) {
		r := rand.New(rand.NewPCG(seed, 4))
		c := newCluster(t, gen.Run(), gen.Agent())
		c.step()
		began := "" // the pod in which effects have begun
		for range 60 {
			for c.run.Status.CompletionTime == nil && r.IntN(2) == 0 {
				losses[r.IntN(len(losses))](c)
			}
			if r.IntN(4) == 0 {
				c.setAgent(t, gen.Agent(onVolume)) // from now on a first attempt is reserved
			}
			if began == "" {
				began = beganIn(c.run)
			}
			live(t, seed, c)
			if a := c.run.Status.Attempt; began != "" && a != nil && a.PodUID != began {
				t.Fatalf("seed %d: effects began in pod %s, and attempt %d has pod %q", seed, began, a.Number, a.PodUID)
			}
		}
		if reasonOf(c.run) == v1alpha1.ReasonFinished {
			t.Fatalf("seed %d: the result of a foreign pod counts", seed)
		}
	}
}

// What a plan does beside the pod is remembered by the status, so it is written at once.
func TestWhatTheStatusRemembersIsWrittenAtOnce(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent())
	c.step()
	s := c.observed()
	if notYetRecorded(s, plan{}) == 0 {
		t.Fatal("the first attempt is recorded at once")
	}
	for name, p := range map[string]plan{
		"a child Run":      {child: &v1alpha1.Run{}},
		"the next attempt": {nextAttempt: &attemptReservation{}},
		"a last message":   {termination: &task.Termination{}},
	} {
		if left := notYetRecorded(s, p); left != 0 {
			t.Errorf("%s is written after %s", name, left)
		}
	}
}

// What a pod was asked to be is known only from the revision of the Agent.
func TestAPodThatIsNotRecordedNeedsItsRevision(t *testing.T) {
	cases := map[string]struct {
		agent func(*v1alpha1.Agent)
		lose  func(*cluster)
		want  string
	}{
		"it was deleted, unreserved":              {nil, func(c *cluster) { c.revision, c.missing = nil, "deleted" }, v1alpha1.ReasonMisconfigured},
		"it was deleted, reserved":                {onVolume, func(c *cluster) { c.revision, c.missing = nil, "deleted" }, v1alpha1.ReasonMisconfigured},
		"it is of a newer operator, unreserved":   {nil, func(c *cluster) { c.revision, c.unsupported = nil, &stored.UnsupportedError{Version: 99} }, v1alpha1.ReasonRevisionUnsupported},
		"it is of a newer operator, and reserved": {onVolume, func(c *cluster) { c.revision, c.unsupported = nil, &stored.UnsupportedError{Version: 99} }, v1alpha1.ReasonRevisionUnsupported},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			agent := gen.Agent()
			if tc.agent != nil {
				tc.agent(agent)
			}
			c := newCluster(t, gen.Run(), agent)
			for len(c.pods) == 0 {
				c.step()
			}
			operatorRestarts(c)
			if a := c.run.Status.Attempt; a != nil {
				a.PodUID = ""
			}
			tc.lose(c)
			c.step()
			if got := reasonOf(c.run); got != tc.want {
				t.Errorf("the Run is %s: %s, want %s", got, messageOf(c.run), tc.want)
			}
		})
	}
}

// There is nothing to compare the pod with, so it is not recorded, and the Run can be stopped.
func TestARunWhoseRevisionCannotBeReadCanBeStopped(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent())
	c.step()
	operatorRestarts(c)
	storedIn(99)(c)
	c.step()
	if got := reasonOf(c.run); got != v1alpha1.ReasonRevisionUnsupported {
		t.Fatalf("the Run is %s: %s", got, messageOf(c.run))
	}
	c.run.Spec.DesiredState = v1alpha1.DesiredStopped
	for range 10 {
		c.step()
		c.now = c.now.Add(stopGrace)
	}
	if got := reasonOf(c.run); got != v1alpha1.ReasonStopped || len(c.pods) != 0 {
		t.Errorf("the Run is %s: %s, and there are %d pods", got, messageOf(c.run), len(c.pods))
	}
}

// A status with an attempt and without its pod fences the pod, which may have reported.
func TestAFirstAttemptIsRecordedWithItsPod(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent())
	c.step()
	reports(1)(c)
	operatorRestarts(c)
	s := c.observed()
	s.facts = failed(plan{reason: v1alpha1.ReasonStarting}, errDown)
	want := statusOf(s, decide(s))
	if want.Attempt != nil || want.StartTime != nil || want.Internal.PendingSince != nil {
		t.Errorf("after a request that failed: %+v", want.Attempt)
	}
	c.step()
	if a := c.run.Status.Attempt; a == nil || a.PodUID != string(c.pod(1).UID) {
		t.Errorf("recorded: %+v", a)
	}
}

func TestWhichFirstAttemptsAreNotReserved(t *testing.T) {
	long := func(r *v1alpha1.Run) { r.Name = "a-run-with-a-name-as-long-as-a-label-may-be-which-is-63-letters" }
	cases := map[string]struct {
		run   func(*v1alpha1.Run)
		agent func(*v1alpha1.Agent)
		limit int32
		want  bool
	}{
		"of a Run without a volume":                     {want: true},
		"of a Run with a volume":                        {agent: onVolume},
		"of an Agent with a queue":                      {limit: 1},
		"of a Run whose name does not fit that of pods": {run: long},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run, agent := gen.Run(), gen.Agent()
			if tc.run != nil {
				tc.run(run)
			}
			if tc.agent != nil {
				tc.agent(agent)
			}
			s := newCluster(t, run, agent).observed()
			s.position.Limit = tc.limit
			p := decide(s)
			if p.nextAttempt == nil || p.nextAttempt.unrecorded != tc.want {
				t.Errorf("the plan is %+v", p)
			}
		})
	}
}

// The attempt that is remembered is the one that is recorded in the end.
func TestAnUnrecordedAttemptIsRecordedAsItBegan(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent())
	c.step()
	remembered := *c.unrecorded
	operatorRestarts(c)
	for c.run.Status.Attempt == nil {
		c.now = c.now.Add(c.step().wake)
	}
	if diff := cmp.Diff(remembered, *c.run.Status.Attempt); diff != "" {
		t.Errorf("-remembered +recorded:\n%s", diff)
	}
	if runnerpod.RevisionName(c.pod(1)) == "" {
		t.Error("the pod does not show its revision")
	}
}
