package refs

import (
	"slices"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// InWorkflow returns the names of the Agents and Workflows to which the nodes of a Workflow
// refer, each once, in their order.
func InWorkflow(spec v1alpha1.WorkflowSpec) (agents, workflows []string) {
	for _, n := range slices.Concat(spec.Nodes, spec.Finally) {
		if name := string(n.Agent); name != "" && !slices.Contains(agents, name) {
			agents = append(agents, name)
		}
		if name := string(n.Workflow); name != "" && !slices.Contains(workflows, name) {
			workflows = append(workflows, name)
		}
	}
	return agents, workflows
}
