package run

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// secretless is an ended pod whose runner says that a Secret is missing. The attempts
// before it had used what the task says.
func secretless(before step.Meter, counts task.Counts) corev1.Pod {
	end := &corev1.ContainerStateTerminated{ExitCode: task.ExitConfig, Message: string(task.Termination{
		Version: task.Version, Attempt: 2, Counts: counts, Result: task.Result{Reason: task.ReasonSecretMissing},
	}.Encode())}
	pod := corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}
	pod.Annotations = map[string]string{v1alpha1.AnnotationTask: string(runnerpod.ToJSON(task.Task{Meter: before}))}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: runnerpod.RunnerContainer, State: corev1.ContainerState{Terminated: end}}}
	return pod
}

func TestOnlyWaited(t *testing.T) {
	failed := secretless(step.Meter{}, task.Counts{})
	failed.Status.ContainerStatuses[0].State.Terminated.Message = string(task.Termination{Result: task.Result{Reason: task.ReasonMisconfigured}}.Encode())
	running := secretless(step.Meter{}, task.Counts{})
	running.Status.Phase, running.Status.ContainerStatuses[0].State = corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	missing := string(task.Termination{Result: task.Result{Reason: task.ReasonSecretMissing}}.Encode())
	used := step.Meter{Steps: 3, ModelCalls: 4, ToolCalls: 5}
	cases := map[string]struct {
		pod  corev1.Pod
		want bool
	}{
		"it used nothing":                   {secretless(step.Meter{}, task.Counts{}), true},
		"it used no more than those before": {secretless(used, task.Counts{Steps: 3, ModelCalls: 4, ToolCalls: 5}), true},
		"it made a step":                    {secretless(used, task.Counts{Steps: 4, ModelCalls: 4, ToolCalls: 5}), false},
		"it called the model":               {secretless(used, task.Counts{Steps: 3, ModelCalls: 5, ToolCalls: 5}), false},
		"it called a tool":                  {secretless(used, task.Counts{Steps: 3, ModelCalls: 4, ToolCalls: 6}), false},
		"an init container waited":          {*endedBefore(runnerpod.FetchContainer, corev1.ContainerStateTerminated{ExitCode: task.ExitConfig, Message: missing}), true},
		"it ended for another reason":       {failed, false},
		"it runs":                           {running, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := waitedForSecret(&tc.pod); got != tc.want {
				t.Errorf("onlyWaited() = %t", got)
			}
		})
	}
	if waitedForSecret(nil) {
		t.Error("no pod waited")
	}
}

// The pod of the current attempt, those that worked and those that are being deleted stay.
func TestWaitedPods(t *testing.T) {
	named := func(name string, pod corev1.Pod) corev1.Pod {
		pod.Name = name
		return pod
	}
	going := named("x-3", secretless(step.Meter{}, task.Counts{}))
	going.DeletionTimestamp = &metav1.Time{Time: gen.Noon}
	s := state{
		run: gen.Run(func(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{Number: 5, Pod: "x-5"} }),
		pods: []corev1.Pod{
			named("x-1", secretless(step.Meter{}, task.Counts{Steps: 1})),
			named("x-2", secretless(step.Meter{}, task.Counts{})),
			going,
			named("x-4", secretless(step.Meter{}, task.Counts{})),
			named("x-5", secretless(step.Meter{}, task.Counts{})),
		},
	}
	if got := names(podsThatWaited(s)); !slices.Equal(got, []string{"x-2", "x-4"}) {
		t.Errorf("waitedPods() = %v", got)
	}
}

// waitsForSecret lets attempt 1 wait for a Secret, and plays until attempt 2 has a pod.
func waitsForSecret(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, gen.Run(), gen.Agent())
	c.begin()
	starts(1)(c)
	c.step()
	exits(1, task.ExitConfig, lackedSecret(1, 15))(c)
	for range 10 {
		c.now = c.now.Add(time.Minute)
		if c.step(); c.run.Status.Attempt.PodUID == "uid-x-2" {
			return c
		}
	}
	t.Fatalf("there is no second attempt: %s", messageOf(c.run))
	return nil
}

// What an attempt that only waited says of its duration is not charged.
func TestWaitingIsNotCharged(t *testing.T) {
	c := waitsForSecret(t)
	if used := runnerpod.TaskIn(c.pod(2)).Meter.DurationSeconds; used != 0 {
		t.Errorf("attempt 2 begins with %d s", used)
	}
	if p := c.run.Status.Progress; p != nil {
		t.Errorf("progress is %+v", p)
	}
}

// An operator may stop between making a pod and recording it. The next one deletes the
// pod that only waited as well.
func TestAdoptingAPodDeletesThoseThatOnlyWaited(t *testing.T) {
	c := waitsForSecret(t)
	waited := secretless(step.Meter{}, task.Counts{})
	waited.Name = "x-1"
	c.run.Status.Attempt.PodUID = ""
	s := c.observed()
	s.pods = append([]corev1.Pod{waited}, s.pods...)
	if p := decide(s); p.recordPod == nil || p.recordPod.Name != "x-2" || !slices.Equal(names(p.remove), []string{"x-1"}) {
		t.Errorf("adopts %v, deletes %v", p.recordPod, names(p.remove))
	}
}
