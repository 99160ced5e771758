package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Delays after a refused create. They double with the time already waited.
const (
	minRefusedWait = time.Second
	maxRefusedWait = time.Minute
)

// podNotCreated returns the plan if the pod of the attempt could not be created.
func podNotCreated(s state) (plan, bool) {
	switch f := s.facts; {
	case f.podRefused != nil:
		return podRefusal(s, f.podRefused), true
	case f.podNameTaken:
		return nextPodName(s), true
	case f.podWithoutUser != "":
		return podWithoutUser(s, f.podWithoutUser), true
	case f.podChanges != "":
		return sandboxAltered(s, f.podChanges), true
	}
	return plan{}, false
}

// podRefusal returns the plan if the API server refuses a pod.
func podRefusal(s state, err error) plan {
	text := apierr.Text(err)
	switch apierr.Classify(err) {
	case apierr.Terminating:
		return waiting(v1alpha1.ReasonPending, "The namespace is being deleted", maxRefusedWait)
	case apierr.Quota:
		return podQuotaRefusal(s, err)
	case apierr.ServiceAccount:
		return retriedCreate(s, v1alpha1.ReasonPending, "Waiting for ServiceAccount "+v1alpha1.RunnerServiceAccount+": "+text)
	case apierr.Admission:
		return failure(v1alpha1.ReasonAdmissionDenied, "Admission refused the pod. "+admissionRemedy(s, text)+": "+text)
	case apierr.Invalid:
		return failure(v1alpha1.ReasonMisconfigured, "The pod is invalid. Correct spec.podTemplate of the Agent: "+text)
	default:
		return retriedCreate(s, v1alpha1.ReasonPending, "The API server refused the pod: "+text)
	}
}

// admissionRemedy returns what to change if admission refuses a pod. The plugin of OpenShift names the field that it
// enforces.
func admissionRemedy(s state, text string) string {
	const general = "Change spec.podTemplate or spec.sandbox of the Agent, or the policy"
	if s.podDefaults.User == runnerpod.PodUserCluster || !strings.Contains(text, "security context constraint") {
		return general
	}
	return "Install Deckhand with the chart's value podUser: Cluster, so that OpenShift assigns the user, or grant ServiceAccount " +
		v1alpha1.RunnerServiceAccount + " SecurityContextConstraints that allow the pod"
}

// retriedCreate returns a plan that tries again with growing delays, for limits.pending at most.
func retriedCreate(s state, reason, message string) plan {
	p := waitingBounded(s, reason, task.Cut(message, task.MaxMessage))
	if p.settles() {
		return p
	}
	waited := s.now.Sub(s.run.Status.Attempt.StartedAt.Time)
	p.wake = min(p.wake, max(minRefusedWait, min(waited, maxRefusedWait)))
	return p
}

// maxConflicts is how many taken names are skipped.
const maxConflicts = 10

// nextPodName skips the name of a pod that another object has.
func nextPodName(s state) plan {
	name := s.run.Status.Attempt.Pod
	skipped := s.attempt() - s.run.Status.Failures - s.run.Status.Disruptions
	if skipped > maxConflicts {
		return failure(v1alpha1.ReasonPodNameConflict, fmt.Sprintf("Pod %s and the pods before it belong to other owners. Delete them, or create the Run with another name", name))
	}
	p := waiting(v1alpha1.ReasonRetrying, fmt.Sprintf("Pod %s belongs to another owner, such as an earlier Run of this name; the next attempt uses another name", name), 0)
	p.nextAttempt = nextAttempt(s, budgetNone)
	return p
}

// podQuotaRefusal returns the plan if a ResourceQuota refuses a pod. Both causes may pass: other pods end, or an
// administrator creates a LimitRange.
func podQuotaRefusal(s state, err error) plan {
	quota, required := apierr.Requirements(err)
	if len(required) == 0 {
		return retriedCreate(s, v1alpha1.ReasonQuotaExceeded, "The namespace's ResourceQuota has no room for the pod. Raise it, or wait until other pods end: "+apierr.Text(err))
	}
	return retriedCreate(s, v1alpha1.ReasonQuotaExceeded, fmt.Sprintf("ResourceQuota %s requires what the pod does not set: %s. %s",
		quota, requirementText(required), requirementRemedy(required)))
}

// requirementText names the resources with the containers that lack them.
func requirementText(required []apierr.Requirement) string {
	parts := make([]string, len(required))
	for i, r := range required {
		parts[i] = r.Resource
		if len(r.Containers) > 0 {
			parts[i] += " of " + containersText(r.Containers)
		}
	}
	return strings.Join(parts, ", ")
}

func containersText(names []string) string {
	if len(names) == 1 {
		return "container " + names[0]
	}
	return "containers " + strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// requirementRemedy names the fields for the resources of the containers. Changed fields of the Agent do not help this
// Run, because its revision does not change.
func requirementRemedy(required []apierr.Requirement) string {
	const byLimitRange = "reate a LimitRange with defaults for them or set containerResources of the chart, and the Run continues"
	var fields []string
	elsewhere := ""
	for _, r := range required {
		for _, name := range containersOf(r) {
			field := resourcesField(name)
			switch {
			case field == "" && runnerpod.IsGuarded(name):
				elsewhere = " (the only ways for container " + name + ")"
			case field == "":
				elsewhere = " (a LimitRange is the only way for container " + name + ")"
			case !slices.Contains(fields, field):
				fields = append(fields, field)
			}
		}
	}
	if len(fields) == 0 {
		return "C" + byLimitRange
	}
	return fmt.Sprintf("Set them in %s of the Agent and create a new Run, or c%s%s", strings.Join(fields, " and "), byLimitRange, elsewhere)
}

// containersOf returns the containers that lack a resource. If the quota names none, these are the containers that the
// Agent has fields for.
func containersOf(r apierr.Requirement) []string {
	if len(r.Containers) > 0 {
		return r.Containers
	}
	return []string{runnerpod.RunnerContainer, runnerpod.SandboxContainer}
}

// resourcesField returns the field of the Agent with the resources of a container, or an empty text.
func resourcesField(container string) string {
	switch container {
	case runnerpod.RunnerContainer, runnerpod.FetchContainer, runnerpod.InstallContainer:
		return "spec.podTemplate.resources"
	case runnerpod.SandboxContainer:
		return "spec.sandbox.resources"
	}
	return ""
}

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
