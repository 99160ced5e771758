package workflow

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/refs"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// reachingWorkflow are the other Workflows that may reach one that changed.
func (r *Reconciler) reachingWorkflow(ctx context.Context, changed client.Object) []reconcile.Request {
	names, err := refs.WorkflowsUsingWorkflow(ctx, r.client, changed.GetNamespace(), changed.GetName())
	if err != nil {
		return nil // the cache is closing
	}
	return requests(changed.GetNamespace(), slices.DeleteFunc(names, func(n string) bool { return n == changed.GetName() }))
}

// reachingAgent are the Workflows that may reach an Agent that changed.
func (r *Reconciler) reachingAgent(ctx context.Context, changed client.Object) []reconcile.Request {
	agents, err := refs.AgentsUsingAgent(ctx, r.client, changed.GetNamespace(), changed.GetName())
	return r.reaching(ctx, changed, agents, err)
}

// reachingModel are the Workflows that may reach a Model that changed.
func (r *Reconciler) reachingModel(ctx context.Context, changed client.Object) []reconcile.Request {
	_, agents, err := refs.UsersOfModel(ctx, r.client, changed.GetNamespace(), changed.GetName())
	return r.reaching(ctx, changed, agents, err)
}

// reachingToolset are the Workflows that may reach a Toolset that changed.
func (r *Reconciler) reachingToolset(ctx context.Context, changed client.Object) []reconcile.Request {
	agents, err := refs.AgentsUsingToolset(ctx, r.client, changed.GetNamespace(), changed.GetName())
	return r.reaching(ctx, changed, agents, err)
}

// reaching are the Workflows that may reach one of some Agents.
func (r *Reconciler) reaching(ctx context.Context, changed client.Object, agents []string, err error) []reconcile.Request {
	if err != nil {
		return nil // the cache is closing
	}
	names, err := refs.WorkflowsUsingAgents(ctx, r.client, changed.GetNamespace(), agents)
	if err != nil {
		return nil // the same
	}
	return requests(changed.GetNamespace(), names)
}

func workflowOfRun(_ context.Context, o client.Object) []reconcile.Request {
	run, is := o.(*v1alpha1.Run)
	if !is || run.Spec.Workflow == "" {
		return nil
	}
	return requests(run.Namespace, []string{run.Spec.Workflow})
}

// neededBy are the Workflows of the versions that one that is gone needed.
func (r *Reconciler) neededBy(ctx context.Context, gone client.Object) []reconcile.Request {
	cm, is := gone.(*corev1.ConfigMap)
	if !is {
		return nil
	}
	var names []string
	for _, hash := range workflow.Needs(cm) {
		var needed corev1.ConfigMap
		if r.client.Get(ctx, client.ObjectKey{Namespace: cm.Namespace, Name: workflow.Name(hash)}, &needed) != nil {
			continue
		}
		if name := workflow.NameOf(&needed); name != "" {
			names = append(names, name)
		}
	}
	return requests(cm.Namespace, names)
}
