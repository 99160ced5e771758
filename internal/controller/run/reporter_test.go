package run

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/statuspatch"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A pod that reported and that the API server no longer has is lost, though the attempt has no UID yet.
func TestAPodThatReportedIsNotCreatedAgain(t *testing.T) {
	other := runnerpod.New(runnerpod.Input{Run: gen.Run(func(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{Number: 1, Pod: "x-1"} }), Revision: newCluster(t, gen.Run(), gen.Agent()).revision, Attempt: 1})
	other.UID = "uid-x-1-again"
	cases := map[string]struct {
		recorded bool
		pods     []corev1.Pod
		want     string
	}{
		"unrecorded":                      {false, nil, v1alpha1.ReasonPodLost},
		"unrecorded, with a second pod":   {false, []corev1.Pod{*other}, v1alpha1.ReasonRetrying},
		"the attempt has been recorded":   {true, nil, v1alpha1.ReasonPodLost},
		"recorded, and its pod is there.": {true, []corev1.Pod{*other}, v1alpha1.ReasonStarting},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, gen.Run(), gen.Agent())
			attempt := v1alpha1.Attempt{Number: 1, Pod: "x-1", AgentRevision: c.revision.Hash}
			s := c.observed()
			s.run.Status.Progress = &v1alpha1.RunProgress{Version: task.Version, Attempt: 1, PodUID: "uid-x-1", Effects: v1alpha1.EffectsBegun}
			if tc.recorded {
				s.run.Status.Attempt = &attempt
			} else {
				s = s.withAttempt(&attempt)
			}
			s.pods = tc.pods
			p := decide(s.withReportedPod())
			if p.create != nil || p.reason != tc.want {
				t.Errorf("creates %v, reason %s, want none and %s", p.create, p.reason, tc.want)
			}
			if len(tc.pods) > 0 && !tc.recorded && len(p.remove) != 1 {
				t.Errorf("%d pods are deleted, want the second one", len(p.remove))
			}
		})
	}
}

// A pod that the caches do not show has reported a result: what counts depends on whose pod it is.
func TestWhosePodReported(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent())
	c.begin()
	own := c.pods["x-1"].DeepCopy()
	isNamesakes(1)(c)
	foreign := c.pods["x-1"].DeepCopy()
	cases := map[string]struct {
		agent   *v1alpha1.Agent
		pod     *corev1.Pod // that has the name
		uid     string      // of the pod that reported
		effects v1alpha1.Effects
		status  string
	}{
		"a pod of the Run":                    {gen.Agent(), own, string(own.UID), "", "attempt 1 of pod , result true"},
		"a pod of another Run":                {gen.Agent(), foreign, namesake, "", "no attempt, no report"},
		"a pod that no longer exists":         {gen.Agent(), nil, "lost", "", "attempt 1 of pod lost, result false"},
		"the same, and another has its name":  {gen.Agent(), own, "lost", "", "attempt 1 of pod lost, result false"},
		"the same, of a Run that is reserved": {gen.Agent(onVolume), nil, "lost", "", "no attempt, no report"},
		"the same, and effects have begun":    {gen.Agent(onVolume), nil, "lost", v1alpha1.EffectsBegun, "attempt 1 of pod lost, result false"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, gen.Run(), tc.agent)
			s := c.observed()
			s.run.Status.Progress = &v1alpha1.RunProgress{Version: task.Version, Attempt: 1, PodUID: tc.uid, Effects: tc.effects, Result: &v1alpha1.Result{Committed: true}}
			is := s.withReporter(tc.pod, c.revision.Hash)
			got := "no attempt, no report"
			if a, p := is.run.Status.Attempt, is.run.Status.Progress; a != nil || p != nil {
				got = fmt.Sprintf("attempt %d of pod %s, result %t", a.Number, a.PodUID, p.Result != nil)
			}
			if got != tc.status {
				t.Errorf("%s, want %s", got, tc.status)
			}
			if is.storedRun().Status.Progress == nil || is.storedRun().Status.Attempt != nil {
				t.Error("the status that the API server has was changed")
			}
		})
	}
}

// Of two pods of the first attempt the one that reports first is recorded: the write of the other
// is refused.
func TestRecordingTestsWhoHasReported(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent())
	c.begin()
	recorded := c.run.Status
	for name, tc := range map[string]struct {
		progress *v1alpha1.RunProgress
		want     statuspatch.Op
	}{
		"nobody":         {nil, statuspatch.Same("/status/progress", nil)},
		"an older one":   {&v1alpha1.RunProgress{Attempt: 1}, statuspatch.Same("/status/progress/podUID", nil)},
		"the pod itself": {&v1alpha1.RunProgress{Attempt: 1, PodUID: "uid-x-1"}, statuspatch.Same("/status/progress/podUID", "uid-x-1")},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.observed()
			s.run.Status.Attempt, s.run.Status.Progress = nil, tc.progress
			s = s.withAttempt(recorded.Attempt)
			ops := preconditionsOf(s, waiting(v1alpha1.ReasonRunning, "", 0))
			if !slices.Contains(ops, tc.want) || !slices.Contains(ops, statuspatch.Same("/status/attempt", nil)) {
				t.Errorf("tests %v, want %v", ops, tc.want)
			}
		})
	}
}
