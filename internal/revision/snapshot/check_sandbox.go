package snapshot

import (
	"fmt"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// MaxToolsets is how many Toolsets the agents of one pod may name.
const MaxToolsets = 16

// checkToolsets checks the Toolsets that an Agent names.
func checkToolsets(agent *v1alpha1.Agent, o Objects) *NotReadyError {
	for _, name := range ToolsetsOf(agent.Spec) {
		t := o.Toolsets[name]
		if t == nil {
			return &NotReadyError{v1alpha1.ReasonNotFound, fmt.Sprintf("Toolset %q not found in namespace %s; create it, or remove it from spec.tools", name, agent.Namespace)}
		}
		if p := CheckToolset(t); p != nil {
			return &NotReadyError{v1alpha1.ReasonNotReady, fmt.Sprintf("Toolset %q is not ready: %s", name, p.Message)}
		}
	}
	return nil
}

// checkSandbox looks for tools that need a sandbox where there is none, and for
// more Toolsets than one pod holds.
func checkSandbox(agent *v1alpha1.Agent, others []*v1alpha1.Agent, o Objects) *NotReadyError {
	if names := toolsetNames(agent, others); len(names) > MaxToolsets {
		return &NotReadyError{v1alpha1.ReasonTooLarge, fmt.Sprintf("It and the Agents that it may reach name %d Toolsets; at most %d fit one pod. Remove some from spec.tools", len(names), MaxToolsets)}
	}
	if agent.Spec.Sandbox != nil {
		return nil
	}
	for _, a := range append([]*v1alpha1.Agent{agent}, others...) {
		for _, t := range a.Spec.Tools {
			if needsSandbox(t, o) {
				return &NotReadyError{v1alpha1.ReasonSandboxMissing, fmt.Sprintf("%s of Agent %q needs a sandbox. Write sandbox: {image: debian:stable-slim}", sayTool(t), a.Name)}
			}
		}
	}
	return nil
}

func needsSandbox(t v1alpha1.Tool, o Objects) bool {
	if task.Builtins[string(t.Builtin)].Sandbox {
		return true
	}
	set := o.Toolsets[string(t.Toolset)]
	return set != nil && set.Spec.Stdio != nil && set.Spec.Stdio.RunIn == v1alpha1.RunInSandbox
}

func sayTool(t v1alpha1.Tool) string {
	if t.Toolset != "" {
		return "Toolset " + string(t.Toolset)
	}
	return "The tool " + string(t.Builtin)
}

// checkPlace holds an Agent that works in the pod of another to its sandbox and
// its files: a pod has one of each.
func checkPlace(agent, other *v1alpha1.Agent) *NotReadyError {
	refuse := func(what, remedy string) *NotReadyError {
		return &NotReadyError{v1alpha1.ReasonNotReady, fmt.Sprintf("Agent %q wants %s, but would work in the pod of this one; %s", other.Name, what, remedy)}
	}
	if s := other.Spec.Sandbox; s != nil && (agent.Spec.Sandbox == nil || agent.Spec.Sandbox.Image != s.Image) {
		return refuse("the sandbox image "+s.Image, "set sandbox.image here to the same, or leave its sandbox out")
	}
	if g := other.Spec.Workspace.Git; g != nil && (agent.Spec.Workspace.Git == nil || agent.Spec.Workspace.Git.URL != g.URL) {
		return refuse("the repository "+g.URL, "set workspace.git here to the same, or leave its workspace.git out")
	}
	if len(other.Spec.Workspace.Files) > 0 && agent.Name != other.Name {
		return refuse("files of its own in the workspace", "move its workspace.files here")
	}
	return nil
}
