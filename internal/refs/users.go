package refs

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
)

// AgentsUsingAgent are the names of the Agents that may reach one, itself included: in their
// pods or, though no further, by giving it work in a Run of its own.
func AgentsUsingAgent(ctx context.Context, c client.Reader, namespace, name string) ([]string, error) {
	var agents v1alpha1.AgentList
	if err := c.List(ctx, &agents, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	users := []string{name}
	for i := range agents.Items {
		if a := &agents.Items[i]; slices.Contains(snapshot.RunAgentsOf(a.Spec), name) {
			users = append(users, a.Name)
		}
	}
	return back(agentEdges(agents.Items), users...), nil
}

// UsersOfModel are the names of the Models that may reach one through their
// fallbacks, itself included, and of the Agents that may reach any of these.
func UsersOfModel(ctx context.Context, c client.Reader, namespace, name string) (models, agents []string, err error) {
	var allModels v1alpha1.ModelList
	if err := c.List(ctx, &allModels, client.InNamespace(namespace)); err != nil {
		return nil, nil, err
	}
	var allAgents v1alpha1.AgentList
	if err := c.List(ctx, &allAgents, client.InNamespace(namespace)); err != nil {
		return nil, nil, err
	}
	edges := map[string][]string{}
	for i := range allModels.Items {
		m := &allModels.Items[i]
		for _, f := range fallbacks(m) {
			edges[f] = append(edges[f], m.Name)
		}
	}
	models = back(edges, name)
	var users []string
	for i := range allAgents.Items {
		a := &allAgents.Items[i]
		if slices.ContainsFunc(snapshot.ModelsOf(a.Spec), func(m string) bool { return slices.Contains(models, m) }) {
			users = append(users, a.Name)
		}
	}
	return models, back(agentEdges(allAgents.Items), users...), nil
}

// AgentsUsingToolset are the names of the Agents that may reach a Toolset.
func AgentsUsingToolset(ctx context.Context, c client.Reader, namespace, name string) ([]string, error) {
	var agents v1alpha1.AgentList
	if err := c.List(ctx, &agents, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var users []string
	for i := range agents.Items {
		if a := &agents.Items[i]; slices.Contains(snapshot.ToolsetsOf(a.Spec), name) {
			users = append(users, a.Name)
		}
	}
	return back(agentEdges(agents.Items), users...), nil
}

// agentEdges are, by the name of an Agent, those that name it.
func agentEdges(agents []v1alpha1.Agent) map[string][]string {
	edges := map[string][]string{}
	for i := range agents {
		for _, to := range snapshot.AgentsOf(agents[i].Spec) {
			edges[to] = append(edges[to], agents[i].Name)
		}
	}
	return edges
}

// back are names and all that lead to them, in order, each once.
func back(edges map[string][]string, names ...string) []string {
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
