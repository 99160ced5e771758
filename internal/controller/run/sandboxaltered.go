package run

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// sandboxAltered ends a Run whose sandbox another webhook changed.
func sandboxAltered(s state, what string) plan {
	message := fmt.Sprintf("Another webhook of the cluster changed pod %s, and commands of the agent would have had the use of it: %s. Keep that webhook from pods with the label app.kubernetes.io/name: deckhand-runner, or list paths of mounts and names of variables or volumes in sandbox.allowInjected of the Agent", s.run.Status.Attempt.Pod, task.Cut(what, task.MaxMessage/2))
	return failure(v1alpha1.ReasonSandboxAltered, message)
}

// recordPod records a pod that was created and is not recorded yet, unless it was changed. Without the revision of the
// Agent, changes cannot be detected.
func recordPod(s state, p plan, pod *corev1.Pod) plan {
	switch {
	case s.unsupported != nil:
		return unreadableRevision(s)
	case s.revision == nil:
		return failure(v1alpha1.ReasonMisconfigured, s.notReadyMessage)
	}
	asked := runnerpod.New(podInputOf(s, s.attempt()))
	if container := runnerpod.Unassigned(asked, pod); container != "" {
		return podWithoutUser(s, container)
	}
	if what := runnerpod.Changes(asked, pod, allowedInjections(s), s.assignable); what != "" {
		return sandboxAltered(s, what)
	}
	p.recordPod = pod
	return p
}

// allowedInjections returns the injections that the Agent allows.
func allowedInjections(s state) []string {
	if sandbox := s.revision.Agent.Sandbox; sandbox != nil {
		return sandbox.AllowInjected
	}
	return nil
}
