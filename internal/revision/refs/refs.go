// Package refs reads the objects to which an Agent or a Model refers, directly or through others, each object once, so
// that cycles end. It links no client, so that programs without a cluster can use it. Package cached has the operator's
// reader, and finds the objects that refer to a changed object.
package refs

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
)

// An Object is an object of the API.
type Object interface {
	metav1.Object
	runtime.Object
}

// A Reader reads the object of a key into an object of its kind. If there is none, the error is NotFound.
type Reader func(ctx context.Context, key types.NamespacedName, into Object) error

// OfAgent reads an Agent and the Agents, Models and Toolsets to which it refers, directly or
// through others. An object that does not exist is nil.
func OfAgent(ctx context.Context, read Reader, agent *v1alpha1.Agent) (snapshot.Objects, error) {
	o := snapshot.Objects{Agents: map[string]*v1alpha1.Agent{agent.Name: agent}}
	agents, models, toolsets := snapshot.AgentsOf(agent.Spec), snapshot.ModelsOf(agent.Spec), snapshot.ToolsetsOf(agent.Spec)
	// One more than the allowed number is enough to detect too many.
	for len(agents) > 0 && len(o.Agents) <= snapshot.MaxAgents+1 {
		name := agents[0]
		agents = agents[1:]
		if _, known := o.Agents[name]; known {
			continue
		}
		found, err := get[v1alpha1.Agent](ctx, read, agent.Namespace, name)
		if err != nil {
			return o, fmt.Errorf("getting Agent %s: %w", name, err)
		}
		o.Agents[name] = found
		if found != nil {
			agents = append(agents, snapshot.AgentsOf(found.Spec)...)
			models = append(models, snapshot.ModelsOf(found.Spec)...)
			toolsets = append(toolsets, snapshot.ToolsetsOf(found.Spec)...)
		}
	}
	if err := readRunAgents(ctx, read, agent.Namespace, o.Agents); err != nil {
		return o, err
	}
	var err error
	if o.Toolsets, err = readToolsets(ctx, read, agent.Namespace, toolsets); err != nil {
		return o, err
	}
	o.Models, err = readModels(ctx, read, agent.Namespace, models)
	return o, err
}

// readRunAgents adds the Agents to which others delegate in child Runs, without the objects to which these refer.
func readRunAgents(ctx context.Context, read Reader, namespace string, agents map[string]*v1alpha1.Agent) error {
	var names []string
	for _, a := range agents {
		if a != nil {
			names = append(names, snapshot.RunAgentsOf(a.Spec)...)
		}
	}
	for _, name := range names {
		if _, known := agents[name]; known {
			continue
		}
		found, err := get[v1alpha1.Agent](ctx, read, namespace, name)
		if err != nil {
			return fmt.Errorf("getting Agent %s: %w", name, err)
		}
		agents[name] = found
	}
	return nil
}

// OfModel reads a Model and its fallbacks, directly or through others.
func OfModel(ctx context.Context, read Reader, m *v1alpha1.Model) (map[string]*v1alpha1.Model, error) {
	models, err := readModels(ctx, read, m.Namespace, Fallbacks(m))
	if models != nil {
		models[m.Name] = m
	}
	return models, err
}

// readModels reads Models and their fallbacks, directly or through others.
func readModels(ctx context.Context, read Reader, namespace string, names []string) (map[string]*v1alpha1.Model, error) {
	out := map[string]*v1alpha1.Model{}
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		if _, known := out[name]; known {
			continue
		}
		found, err := get[v1alpha1.Model](ctx, read, namespace, name)
		if err != nil {
			return nil, fmt.Errorf("getting Model %s: %w", name, err)
		}
		out[name] = found
		if found != nil {
			names = append(names, Fallbacks(found)...)
		}
	}
	return out, nil
}

func readToolsets(ctx context.Context, read Reader, namespace string, names []string) (map[string]*v1alpha1.Toolset, error) {
	out := map[string]*v1alpha1.Toolset{}
	for _, name := range names {
		if _, known := out[name]; known {
			continue
		}
		found, err := get[v1alpha1.Toolset](ctx, read, namespace, name)
		if err != nil {
			return nil, fmt.Errorf("getting Toolset %s: %w", name, err)
		}
		out[name] = found
	}
	return out, nil
}

// Fallbacks returns the names of the fallbacks of a Model.
func Fallbacks(m *v1alpha1.Model) []string {
	var out []string
	for _, f := range m.Spec.Fallbacks {
		out = append(out, string(f))
	}
	return out
}

// get reads one object; nil if it does not exist.
func get[T any, P interface {
	*T
	Object
}](ctx context.Context, read Reader, namespace, name string) (P, error) {
	found := P(new(T))
	err := read(ctx, types.NamespacedName{Namespace: namespace, Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absent is a fact, not a fault
	}
	return found, err
}

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
