// Package cached has the reader of package refs for the operator's cache, and finds the objects that refer to a changed
// object.
package cached

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/refs"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
)

// AgentsUsingAgent returns the names of an Agent and of the Agents that call it, directly or
// through others in their pod. Of a delegation to a child Run, only the caller counts.
func AgentsUsingAgent(ctx context.Context, c client.Reader, namespace, name string) ([]string, error) {
	var agents v1alpha1.AgentList
	if err := c.List(ctx, &agents, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	users := []string{name}
	for i := range agents.Items {
		if a := &agents.Items[i]; slices.Contains(snapshot.RunAgentsOf(a.Spec), name) {
			users = append(users, a.Name)
		}
	}
	return withUsers(agentEdges(agents.Items), users...), nil
}

// UsersOfModel returns the names of a Model and of the Models that have it as a fallback,
// directly or through others, and of the Agents that use any of these.
func UsersOfModel(ctx context.Context, c client.Reader, namespace, name string) (models, agents []string, err error) {
	var allModels v1alpha1.ModelList
	if err := c.List(ctx, &allModels, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, err
	}
	var allAgents v1alpha1.AgentList
	if err := c.List(ctx, &allAgents, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, err
	}
	edges := map[string][]string{}
	for i := range allModels.Items {
		m := &allModels.Items[i]
		for _, f := range refs.Fallbacks(m) {
			edges[f] = append(edges[f], m.Name)
		}
	}
	models = withUsers(edges, name)
	var users []string
	for i := range allAgents.Items {
		a := &allAgents.Items[i]
		if slices.ContainsFunc(snapshot.ModelsOf(a.Spec), func(m string) bool { return slices.Contains(models, m) }) {
			users = append(users, a.Name)
		}
	}
	return models, withUsers(agentEdges(allAgents.Items), users...), nil
}

// AgentsUsingToolset returns the names of the Agents that use a Toolset, directly or through
// others.
func AgentsUsingToolset(ctx context.Context, c client.Reader, namespace, name string) ([]string, error) {
	var agents v1alpha1.AgentList
	if err := c.List(ctx, &agents, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var users []string
	for i := range agents.Items {
		if a := &agents.Items[i]; slices.Contains(snapshot.ToolsetsOf(a.Spec), name) {
			users = append(users, a.Name)
		}
	}
	return withUsers(agentEdges(agents.Items), users...), nil
}

// agentEdges returns, by the name of an Agent, the Agents that refer to it.
func agentEdges(agents []v1alpha1.Agent) map[string][]string {
	edges := map[string][]string{}
	for i := range agents {
		for _, to := range snapshot.AgentsOf(agents[i].Spec) {
			edges[to] = append(edges[to], agents[i].Name)
		}
	}
	return edges
}

// withUsers returns names and all names that edges lead to from them, sorted, each once.
func withUsers(edges map[string][]string, names ...string) []string {
	seen := map[string]bool{}
	var out []string
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		out = append(out, name)
		names = append(names, edges[name]...)
	}
	slices.Sort(out)
	return out
}

// Reader reads with a client.
func Reader(c client.Reader) refs.Reader {
	return func(ctx context.Context, key types.NamespacedName, into refs.Object) error {
		return c.Get(ctx, key, into)
	}
}

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
