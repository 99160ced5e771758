package run

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// What does not fit the signals waits, and what is first goes first.
func TestSignalsAreBounded(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent())
	c.begin()
	starts(1)(c)
	reports(1)(c)
	for i := range 5 {
		answers("", strings.Repeat("\"", 1000))(c)
		c.decided[i].Name = fmt.Sprintf("m%d", i)
		c.decided[i].CreationTimestamp = metav1.NewTime(c.now.Add(time.Duration(i) * second))
	}
	heard := func() []string {
		t.Helper()
		for range 3 {
			c.step()
		}
		var names []string
		text := c.pod(1).Annotations[v1alpha1.AnnotationSignals]
		if len(text) > maxSignals {
			t.Errorf("the signals have %d bytes", len(text))
		}
		for _, d := range runnerpod.SignalsIn(c.pod(1)).Decisions {
			names = append(names, d.Name)
		}
		return names
	}
	if diff := cmp.Diff([]string{"m0", "m1", "m2"}, heard()); diff != "" {
		t.Errorf("at first -want +got:\n%s", diff)
	}
	reports(1, acts("m0", "m1"))(c)
	if diff := cmp.Diff([]string{"m2", "m3", "m4"}, heard()); diff != "" {
		t.Errorf("after two -want +got:\n%s", diff)
	}
	c.decided = c.decided[:1]
	c.decided[0].Name, c.decided[0].Spec.Value = "large", strings.Repeat("\"", 4096)
	if got := pendingDecisions(c.observed(), task.Signals{}); len(got) != 1 {
		t.Errorf("the largest Decision never fits: %d are said", len(got))
	}
}

// A Decision could be deleted before the operator made the Run its owner. Acting on it
// only then, the record of what was decided stays.
func TestADecisionIsDeliveredOnceItBelongsToTheRun(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent())
	c.begin()
	starts(1)(c)
	reports(1, awaits("AwaitingAnswer", question("s3c1", "Which?")))(c)
	answers("s3c1", "main")(c)
	owner := c.decided[0].OwnerReferences
	for name, tc := range map[string]struct {
		owners []metav1.OwnerReference
		want   int
	}{
		"of no Run":           {nil, 0},
		"of an earlier Run":   {[]metav1.OwnerReference{{APIVersion: owner[0].APIVersion, Kind: "Run", Name: "x", UID: "earlier"}}, 0},
		"of a Run of another": {[]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Run", Name: "x", UID: owner[0].UID}}, 0},
		"of this Run":         {owner, 1},
	} {
		c.decided[0].OwnerReferences = tc.owners
		if got := pendingDecisions(c.observed(), task.Signals{}); len(got) != tc.want {
			t.Errorf("%s: delivered %+v", name, got)
		}
	}
}

// What was granted holds for the attempts that follow; what was refused, or is
// still on its way, or was granted to an earlier Run of that name, does not count.
func TestGrantsOutliveAnAttempt(t *testing.T) {
	cost := v1alpha1.Money("1USD")
	c := newCluster(t, gen.Run(), gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Limits.Cost = &cost }))
	two, tokens := v1alpha1.Money("2USD"), v1alpha1.Tokens("1M")
	for i, applied := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown, metav1.ConditionTrue} {
		grants("limit-steps-1", int32(10+i))(c)
		d := &c.decided[i]
		d.Spec.Grant.Tokens, d.Spec.Grant.Cost = &tokens, &two
		d.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionApplied, Status: applied}}
		d.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: c.run.Name, UID: c.run.UID}}
	}
	c.decided[4].OwnerReferences[0].UID = "another"
	got := runnerpod.TaskOf(podInputOf(c.observed(), 1)).Limits
	want := task.Limits{Steps: 30 + 21, Tokens: 4_000_000, CostMicroUSD: 5_000_000, DurationSeconds: 3600, Depth: 3, WaitSeconds: 604800}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if none := withGrants(task.Limits{Steps: 1}, task.Limits{Steps: 1, Tokens: 5, CostMicroUSD: 5}); none != (task.Limits{Steps: 2}) {
		t.Errorf("a grant where there is no limit makes one: %+v", none)
	}
}

// Every runner may wait for a model, and is believed about how long it worked. No clock of its
// own holds the operator back.
func TestWhenARunnerIsGivenUp(t *testing.T) {
	cases := map[string]struct {
		heard time.Duration // since the runner began: when it reported last
		used  time.Duration // and what it said that it used
		want  time.Duration // since it began, seen after five hours
	}{
		"one that waited all the time":             {5 * hour, 0, 6*hour + minute},
		"one that waited for four hours":           {5 * hour, hour, 5*hour + minute},
		"one that has half an hour left":           {5 * hour, 30 * minute, 5*hour + 31*minute},
		"one that says it used more than there is": {5 * hour, 9 * hour, 5*hour + minute},
		"one that hangs since its third hour":      {3 * hour, 30 * minute, 3*hour + 31*minute},
		"one that never waited":                    {10 * minute, 10 * minute, hour + minute},
		"one whose clock is ahead":                 {9 * hour, 30 * minute, 5*hour + 31*minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, gen.Run(), gen.Agent())
			c.begin()
			starts(1)(c)
			reports(1, used(tc.used))(c)
			c.run.Status.Progress.Sequence = c.now.Add(tc.heard).UnixMilli()
			c.now = c.now.Add(5 * hour)
			if got := overrunAt(c.observed()).Sub(gen.Noon); got != tc.want {
				t.Errorf("given up after %s, want %s", got, tc.want)
			}
		})
	}
}

// The runner is sent the files that a Message shows: also the longest paths, alone.
func TestAMessageIsSentWithItsImages(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent())
	c.begin()
	starts(1)(c)
	reports(1)(c)
	answers("", "look")(c)
	d := &c.decided[0].Spec
	d.Type, d.Images = v1alpha1.DecisionMessage, []string{"docs/chart.png"}
	for n := range 19 {
		d.Images = append(d.Images, fmt.Sprintf("%02d%s", n, strings.Repeat("<", 253)))
	}
	for range 3 {
		c.step()
	}
	sent := runnerpod.SignalsIn(c.pod(1)).Decisions
	if len(sent) != 1 || !slices.Equal(sent[0].Images, d.Images) || sent[0].Value != "look" {
		t.Errorf("the runner is sent %+v", sent)
	}
}
