package run

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// stops what comes before the runner, as a kubelet reports it.
func endedBefore(name string, end corev1.ContainerStateTerminated) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Name, pod.Status.Phase = "x-1", corev1.PodFailed
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: name, State: corev1.ContainerState{Terminated: &end}}}
	return pod
}

func TestVerdictsOfWhatComesBefore(t *testing.T) {
	word := func(r task.Result) string {
		return string(task.Termination{Version: task.Version, Attempt: 1, Result: r}.Encode())
	}
	cases := map[string]struct {
		name   string
		end    corev1.ContainerStateTerminated
		charge budget
		reason string
		final  bool
		says   string
	}{
		"a repository that is not there is final":          {"fetch", corev1.ContainerStateTerminated{ExitCode: 78, Message: word(task.Result{Reason: task.ReasonMisconfigured, Message: "no such repository"})}, budgetNone, v1alpha1.ReasonMisconfigured, true, "no such repository"},
		"a session that cannot be read is final":           {"fetch", corev1.ContainerStateTerminated{ExitCode: 78, Message: word(task.Result{Reason: task.ReasonNothingToContinue, Message: "it is empty"})}, budgetNone, v1alpha1.ReasonNothingToContinue, true, "it is empty"},
		"a network that fails is tried again":              {"fetch", corev1.ContainerStateTerminated{ExitCode: 69, Message: word(task.Result{Reason: task.ReasonToolUnavailable, Message: "timed out"})}, budgetRetries, v1alpha1.ReasonToolUnavailable, false, "timed out"},
		"a Secret that is missing is waited for":           {"fetch", corev1.ContainerStateTerminated{ExitCode: 78, Message: word(task.Result{Reason: task.ReasonSecretMissing, Message: "no Secret git"})}, budgetNone, v1alpha1.ReasonSecretMissing, false, "no Secret git"},
		"the promise of an older runner is not said twice": {"fetch", corev1.ContainerStateTerminated{ExitCode: 78, Message: word(task.Result{Reason: task.ReasonSecretMissing, Message: "no Secret git" + within})}, budgetNone, v1alpha1.ReasonSecretMissing, false, "no Secret git"},
		"a repository that does not fit is final":          {"fetch", corev1.ContainerStateTerminated{ExitCode: 65, Message: word(task.Result{Reason: task.ReasonStorageFull, Message: "full"})}, budgetNone, v1alpha1.ReasonStorageFull, true, "full"},
		"one that takes too much memory is the work's":     {"fetch", corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}, budgetRetries, v1alpha1.ReasonOutOfMemory, false, "podTemplate.resources"},
		"being killed is a disruption":                     {"fetch", corev1.ContainerStateTerminated{ExitCode: 137}, budgetDisruptions, v1alpha1.ReasonPodLost, false, ""},
		"a crash is the work's, and its log is named":      {"fetch", corev1.ContainerStateTerminated{ExitCode: 2}, budgetRetries, v1alpha1.ReasonRunnerFailed, false, "container fetch"},
		"an image without the program is named":            {"install", corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: "exec: \"/sandbox\": no such file"}, budgetRetries, v1alpha1.ReasonRunnerFailed, false, "container install could not be started (StartError): exec: \"/sandbox\": no such file. If its limit of memory is below 64Mi, raise podTemplate.resources of the Agent; else check runner.image of the chart and the cluster node"},
		"what it says is one line":                         {"install", corev1.ContainerStateTerminated{ExitCode: 1, Message: "a\nb\u202e"}, budgetRetries, v1alpha1.ReasonRunnerFailed, false, `a b\u202e`},
		"a sidecar that ends says nothing":                 {"sandbox", corev1.ContainerStateTerminated{ExitCode: 137}, budgetDisruptions, v1alpha1.ReasonPodLost, false, "ended without running"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := outcomeOfPod(endedBefore(tc.name, tc.end))
			if got.budget != tc.charge || got.reason != tc.reason || got.final != tc.final || !strings.Contains(got.message, tc.says) {
				t.Errorf("verdictOfPod() = %+v, want charge %d, reason %s, final %t, and a message with %q", got, tc.charge, tc.reason, tc.final, tc.says)
			}
		})
	}
}

// A container that could not be started has no log: its state has the words of the container runtime.
func TestARunnerThatCouldNotBeStartedIsExplained(t *testing.T) {
	for _, reason := range []string{"StartError", "ContainerCannotRun"} {
		end := corev1.ContainerStateTerminated{ExitCode: 128, Reason: reason, Message: "failed to start containerd task: memory limit too low."}
		pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: runnerpod.RunnerContainer, State: corev1.ContainerState{Terminated: &end}}}}}
		got := outcomeOfPod(pod)
		want := "container runner could not be started (" + reason + "): failed to start containerd task: memory limit too low. If its limit of memory is below 64Mi, raise podTemplate.resources of the Agent; else check spec.podTemplate.runnerImage of the Agent and the cluster node"
		if got.budget != budgetRetries || got.reason != v1alpha1.ReasonRunnerFailed || got.message != want {
			t.Errorf("the attempt ended with %+v, want %s", got, want)
		}
	}
}

// Which container waits for what, and where its image is to be mended.
func TestContainersThatDoNotStart(t *testing.T) {
	cases := map[string]struct {
		container, waits, message string
		reason, says              string
	}{
		"an image of a sandbox that is no name":     {"sandbox", "InvalidImageName", "", v1alpha1.ReasonInvalidImage, "sandbox.image of the Agent"},
		"an image of a server that is no name":      {"mcp-issues", "InvalidImageName", "", v1alpha1.ReasonInvalidImage, "spec.stdio.container.image of the Toolset"},
		"an image of a sandbox that is not there":   {"sandbox", "ImagePullBackOff", "not found", v1alpha1.ReasonImagePulling, "cannot be pulled yet"},
		"a server whose Secret is missing":          {"mcp-issues", "CreateContainerConfigError", `secret "issues" not found`, v1alpha1.ReasonSecretMissing, `secret "issues" not found`},
		"a server that has a Secret without a key":  {"mcp-issues", "CreateContainerConfigError", "couldn't find key token in Secret team-a/issues", v1alpha1.ReasonSecretMissing, "couldn't find key token"},
		"a sandbox that ends again and again":       {"sandbox", "CrashLoopBackOff", "back-off", v1alpha1.ReasonStarting, "container sandbox: CrashLoopBackOff"},
		"an installer whose image is not there yet": {"install", "ErrImagePull", "timeout", v1alpha1.ReasonImagePulling, "timeout"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newClusterOf(t, gen.Run(), gen.Agent(gen.Coder), gen.Toolsets())
			c.begin()
			pod := c.pod(1)
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: tc.container, Image: "img", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: tc.waits, Message: tc.message}}}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: runnerpod.RunnerContainer, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}}
			if podKey(pod) == "" {
				t.Error("the controller is not told")
			}
			c.step()
			if reasonOf(c.run) != tc.reason || !strings.Contains(messageOf(c.run), tc.says) {
				t.Errorf("the Run is %s: %s, want %s and %q", reasonOf(c.run), messageOf(c.run), tc.reason, tc.says)
			}
		})
	}
}
