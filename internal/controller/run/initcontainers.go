package run

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// outcomeOfInitContainers classifies a pod whose runner never started because an init
// container failed; false: none did.
func outcomeOfInitContainers(pod *corev1.Pod) (attemptOutcome, bool) {
	for _, container := range pod.Status.InitContainerStatuses {
		end := container.State.Terminated
		if end == nil || end.ExitCode == 0 || runnerpod.IsGuarded(container.Name) {
			continue // a sidecar that ends is started again
		}
		if v, is := outcomeOfStart(container.Name, end); is {
			return v, true
		}
		if container.Name == runnerpod.FetchContainer {
			return outcomeOfFetch(end), true
		}
		message := sentence(fmt.Sprintf("container %s ended with code %d", container.Name, end.ExitCode), end.Reason, untrusted.Words(end.Message, task.MaxMessage))
		return attemptOutcome{budget: budgetRetries, reason: v1alpha1.ReasonRunnerFailed, message: task.Cut(message, task.MaxMessage)}, true
	}
	return attemptOutcome{}, false
}

// outcomeOfFetch classifies by the exit codes that runners use. Servers that could not be reached may be available in
// the next attempt.
func outcomeOfFetch(end *corev1.ContainerStateTerminated) attemptOutcome {
	said := task.Result{}
	if t := runnerpod.DecodeTermination(end); t != nil {
		said = t.Result
	}
	message := cmp.Or(said.Message, fmt.Sprintf("filling the workspace ended with code %d; its log says more: kubectl logs of the pod, container %s", end.ExitCode, runnerpod.FetchContainer))
	switch {
	case end.Reason == "OOMKilled":
		return attemptOutcome{budget: budgetRetries, reason: v1alpha1.ReasonOutOfMemory, message: "filling the workspace took more memory than its limit; raise podTemplate.resources of the Agent, or set git.depth: 1"}
	case said.Reason == task.ReasonSecretMissing:
		return attemptOutcome{budget: budgetNone, reason: v1alpha1.ReasonSecretMissing, message: message}
	case said.Reason == task.ReasonStorageFull:
		return attemptOutcome{final: true, reason: v1alpha1.ReasonStorageFull, message: message}
	case end.ExitCode == task.ExitConfig || end.ExitCode == task.ExitBadTask:
		return attemptOutcome{final: true, reason: v1alpha1.ReasonMisconfigured, message: message}
	case end.ExitCode == task.ExitUnavailable:
		return attemptOutcome{budget: budgetRetries, reason: v1alpha1.ReasonToolUnavailable, message: message}
	case end.ExitCode == 137 || end.ExitCode == task.ExitInterrupted:
		return attemptOutcome{budget: budgetDisruptions, reason: v1alpha1.ReasonPodLost, message: message}
	}
	return attemptOutcome{budget: budgetRetries, reason: v1alpha1.ReasonRunnerFailed, message: message}
}
