package cached

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/refs"
)

// WorkflowsUsingWorkflow returns the names of a Workflow and of the Workflows that refer to it,
// directly or through others.
func WorkflowsUsingWorkflow(ctx context.Context, c client.Reader, namespace, name string) ([]string, error) {
	all, err := workflowsOf(ctx, c, namespace)
	if err != nil {
		return nil, err
	}
	return withUsers(workflowEdges(all), name), nil
}

// WorkflowsUsingAgents returns the names of the Workflows that refer to one of some Agents,
// directly or through others.
func WorkflowsUsingAgents(ctx context.Context, c client.Reader, namespace string, agents []string) ([]string, error) {
	all, err := workflowsOf(ctx, c, namespace)
	if err != nil {
		return nil, err
	}
	var users []string
	for i := range all {
		named, _ := refs.InWorkflow(all[i].Spec)
		if slices.ContainsFunc(named, func(n string) bool { return slices.Contains(agents, n) }) {
			users = append(users, all[i].Name)
		}
	}
	return withUsers(workflowEdges(all), users...), nil
}

// workflowsOf returns the Workflows of a namespace, which must not be changed.
func workflowsOf(ctx context.Context, c client.Reader, namespace string) ([]v1alpha1.Workflow, error) {
	var list v1alpha1.WorkflowList
	err := c.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	return list.Items, err
}

// workflowEdges returns, by the name of a Workflow, the Workflows that refer to it.
func workflowEdges(all []v1alpha1.Workflow) map[string][]string {
	edges := map[string][]string{}
	for i := range all {
		_, named := refs.InWorkflow(all[i].Spec)
		for _, to := range named {
			edges[to] = append(edges[to], all[i].Name)
		}
	}
	return edges
}
