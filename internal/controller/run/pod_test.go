package run

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// firstPod is the pod of the first attempt of a Run.
func firstPod(t *testing.T, run *v1alpha1.Run, agent *v1alpha1.Agent) *corev1.Pod {
	t.Helper()
	c := newCluster(t, run, agent)
	c.begin()
	return c.pod(1)
}

// golden compares a pod with its file.
func golden(t *testing.T, file string, pod *corev1.Pod) {
	t.Helper()
	pod.UID, pod.CreationTimestamp, pod.Status = "", metav1.Time{}, corev1.PodStatus{}
	got, err := yaml.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the pod is another (-want +got):\n%s", diff)
	}
}

// A later attempt knows what was used and what went wrong.
func TestNextAttemptCarriesTheMeter(t *testing.T) {
	run := gen.Run()
	run.Labels = map[string]string{"tier": "prod"}
	c := newCluster(t, run, gen.Agent())
	c.begin()
	starts(1)(c)
	micro := int64(42)
	reports(1, commits("ModelUnavailable", "HTTP 503"), func(p *v1alpha1.RunProgress) {
		p.Counts = v1alpha1.Counts{Steps: 3, ModelCalls: 4, ToolCalls: 5, ToolErrors: 1, Errors: 1}
		p.Usage = v1alpha1.Usage{InputTokens: 100, OutputTokens: 10, TotalTokens: 110, CostMicroUSD: &micro, DurationSeconds: 60}
	})(c)
	exits(1, 69)(c)
	c.now = c.now.Add(backoff(c.run, budgetRetries))
	c.step()
	s := c.observed()
	got := runnerpod.TaskOf(podInputOf(s, s.attempt()))
	if got.Attempt != 2 || got.Meter.Steps != 3 || got.Meter.ToolErrors != 1 || got.Meter.Usage.CostMicroUSD != 42 || !got.Meter.Usage.Priced || got.Meter.DurationSeconds != 60 {
		t.Errorf("the task is %+v", got)
	}
	if got.Labels["tier"] != "prod" {
		t.Errorf("its labels are %v", got.Labels)
	}
	if got.Retry != "ModelUnavailable: HTTP 503" {
		t.Errorf("retry is %q", got.Retry)
	}
	if left := remainingDuration(s).Seconds(); left != 3540 {
		t.Errorf("%v seconds are left, want 3540", left)
	}
}

func TestVerdicts(t *testing.T) {
	ended := func(mods ...func(*corev1.Pod)) *corev1.Pod {
		pod := &corev1.Pod{}
		pod.Name = "x-1"
		for _, mod := range mods {
			mod(pod)
		}
		return pod
	}
	exit := func(code int32, reason string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: runnerpod.RunnerContainer, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}}}
		}
	}
	disrupted := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"}}
	}
	failsAs := func(reason string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, reason }
	}
	cases := map[string]struct {
		pod    *corev1.Pod
		charge budget
		reason string
		final  bool
	}{
		"a drain is a disruption, whatever the exit code": {ended(exit(1, ""), disrupted), budgetDisruptions, v1alpha1.ReasonPodLost, false},
		"a drain is a disruption, even with exit code 0":  {ended(exit(0, ""), disrupted), budgetDisruptions, v1alpha1.ReasonPodLost, false},
		"an eviction is a disruption":                     {ended(func(p *corev1.Pod) { p.Status.Reason = "Evicted" }), budgetDisruptions, v1alpha1.ReasonPodLost, false},
		"an eviction for its own files is the work's": {ended(func(p *corev1.Pod) {
			p.Status.Reason, p.Status.Message = "Evicted", `Usage of EmptyDir volume "workspace" exceeds the limit "1Gi". `
		}), budgetNone, v1alpha1.ReasonStorageFull, true},
		"a preemption by the kubelet is a disruption":    {ended(failsAs("Preempting")), budgetDisruptions, v1alpha1.ReasonPodLost, false},
		"a node that is lost is a disruption":            {ended(failsAs("NodeLost")), budgetDisruptions, v1alpha1.ReasonPodLost, false},
		"a shutdown of the node is a disruption":         {ended(exit(0, "Completed"), failsAs("NodeShutdown")), budgetDisruptions, v1alpha1.ReasonPodLost, false},
		"the same, as newer kubelets name it":            {ended(exit(0, "Completed"), failsAs("Terminated")), budgetDisruptions, v1alpha1.ReasonPodLost, false},
		"a pod that never ran is a disruption":           {ended(), budgetDisruptions, v1alpha1.ReasonPodLost, false},
		"the pod's deadline is the Run's limit":          {ended(func(p *corev1.Pod) { p.Status.Reason = "DeadlineExceeded" }), budgetNone, v1alpha1.ReasonDurationLimit, true},
		"out of memory is the work's":                    {ended(exit(137, "OOMKilled")), budgetRetries, v1alpha1.ReasonOutOfMemory, false},
		"killed is a disruption":                         {ended(exit(137, "Error")), budgetDisruptions, v1alpha1.ReasonPodLost, false},
		"terminated is a disruption":                     {ended(exit(143, "Error")), budgetDisruptions, v1alpha1.ReasonPodLost, false},
		"exit code 0 without a result is a disruption":   {ended(exit(0, "Completed")), budgetDisruptions, v1alpha1.ReasonPodLost, false},
		"a fenced runner of the current attempt is lost": {ended(exit(task.ExitFenced, "")), budgetDisruptions, v1alpha1.ReasonPodLost, false},
		"a task that makes no sense is final":            {ended(exit(task.ExitBadTask, "")), budgetNone, v1alpha1.ReasonMisconfigured, true},
		"a configuration that makes no sense is final":   {ended(exit(task.ExitConfig, "")), budgetNone, v1alpha1.ReasonMisconfigured, true},
		"an upstream that is down is the work's":         {ended(exit(task.ExitUnavailable, "")), budgetRetries, v1alpha1.ReasonModelUnavailable, false},
		"any code not listed is a failure of the work":   {ended(exit(42, "")), budgetRetries, v1alpha1.ReasonRunnerFailed, false},
		"a Go panic is a failure of the work":            {ended(exit(2, "Error")), budgetRetries, v1alpha1.ReasonRunnerFailed, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := outcomeOfPod(tc.pod)
			if got.budget != tc.charge || got.reason != tc.reason || got.final != tc.final {
				t.Errorf("verdictOfPod() = %+v, want charge %d, reason %s, final %t", got, tc.charge, tc.reason, tc.final)
			}
		})
	}
}

func TestBackoff(t *testing.T) {
	for name, tc := range map[string]struct {
		failures, disruptions int32
		charge                budget
		seconds               float64
	}{
		"the first failure":             {0, 0, budgetRetries, 10},
		"the second":                    {1, 0, budgetRetries, 20},
		"the first disruption is free":  {0, 0, budgetDisruptions, 0},
		"the second is not":             {0, 1, budgetDisruptions, 10},
		"it stops growing at 5 minutes": {9, 9, budgetRetries, 300},
	} {
		t.Run(name, func(t *testing.T) {
			run := gen.Run(func(r *v1alpha1.Run) { r.Status.Failures, r.Status.Disruptions = tc.failures, tc.disruptions })
			if got := backoff(run, tc.charge).Seconds(); got != tc.seconds {
				t.Errorf("backoff() = %vs, want %vs", got, tc.seconds)
			}
		})
	}
}

// What the runner counts is in package snapshot; these two clocks are the
// operator's.
func TestClocks(t *testing.T) {
	minute, hour, day := v1alpha1.Duration("1m"), v1alpha1.Duration("1h"), v1alpha1.Duration("24h")
	cases := map[string]struct {
		agent, run        v1alpha1.Limits
		pending, deadline time.Duration
	}{
		"nothing said":         {pending: snapshot.DefaultPending},
		"a Run lowers":         {v1alpha1.Limits{Pending: &hour, Deadline: &day}, v1alpha1.Limits{Pending: &minute, Deadline: &hour}, time.Minute, time.Hour},
		"a Run does not raise": {v1alpha1.Limits{Pending: &minute, Deadline: &hour}, v1alpha1.Limits{Pending: &hour, Deadline: &day}, time.Minute, time.Hour},
		"a Run has a deadline": {run: v1alpha1.Limits{Deadline: &day}, pending: snapshot.DefaultPending, deadline: 24 * time.Hour},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := effective(limits{pending: seconds(tc.agent.Pending), deadline: seconds(tc.agent.Deadline)}, &tc.run)
			if got.pending != tc.pending || got.deadline != tc.deadline {
				t.Errorf("pending %s, deadline %s", got.pending, got.deadline)
			}
		})
	}
}
