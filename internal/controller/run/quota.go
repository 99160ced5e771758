package run

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
)

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
