package run

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/refs/cached"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// runFinder finds the Runs to reconcile when another object changes.
type runFinder struct{ client client.Reader }

// unstartedByAgent indexes the Runs that wait for their Agent.
func unstartedByAgent(o client.Object) []string {
	run, is := o.(*v1alpha1.Run)
	if !is || run.Status.Attempt != nil || run.Status.CompletionTime != nil {
		return nil
	}
	return []string{run.Spec.Agent}
}

// waitingForAgent returns the Runs that wait for an Agent, or for another Agent that refers to it.
func (r runFinder) waitingForAgent(ctx context.Context, agent client.Object) []reconcile.Request {
	names, err := cached.AgentsUsingAgent(ctx, r.client, agent.GetNamespace(), agent.GetName())
	if err != nil {
		return nil // the cache is closing
	}
	return r.waitingForAny(ctx, agent.GetNamespace(), names)
}

// waitingForModel returns the Runs that wait for an Agent that refers to a Model.
func (r runFinder) waitingForModel(ctx context.Context, model client.Object) []reconcile.Request {
	_, names, err := cached.UsersOfModel(ctx, r.client, model.GetNamespace(), model.GetName())
	if err != nil {
		return nil // the cache is closing
	}
	return r.waitingForAny(ctx, model.GetNamespace(), names)
}

// waitingForToolset returns the Runs that wait for an Agent that refers to a Toolset.
func (r runFinder) waitingForToolset(ctx context.Context, toolset client.Object) []reconcile.Request {
	names, err := cached.AgentsUsingToolset(ctx, r.client, toolset.GetNamespace(), toolset.GetName())
	if err != nil {
		return nil // the cache is closing
	}
	return r.waitingForAny(ctx, toolset.GetNamespace(), names)
}

func (r runFinder) waitingForAny(ctx context.Context, namespace string, agents []string) []reconcile.Request {
	var out []reconcile.Request
	for _, name := range agents {
		var runs v1alpha1.RunList
		if r.client.List(ctx, &runs, client.InNamespace(namespace), client.MatchingFields{byAgent: name}, client.UnsafeDisableDeepCopy) != nil {
			return nil // the cache is closing
		}
		for i := range runs.Items {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&runs.Items[i])})
		}
	}
	return out
}

// childrenOf returns the finished child Runs of a Run that have a TTL.
func (r runFinder) childrenOf(ctx context.Context, parent client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, label := range []string{v1alpha1.LabelParentRun, v1alpha1.LabelWorkflowRun} {
		var list v1alpha1.RunList
		if r.client.List(ctx, &list, client.InNamespace(parent.GetNamespace()), client.MatchingLabels{label: parent.GetName()}, client.UnsafeDisableDeepCopy) != nil {
			return nil // the cache is closing
		}
		for i := range list.Items {
			if child := &list.Items[i]; runstatus.IsFinished(child) && child.Spec.TTLSecondsAfterFinished != nil {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(child)})
			}
		}
	}
	return out
}

// runOfDecision returns the Run that a Decision is about.
func runOfDecision(_ context.Context, o client.Object) []reconcile.Request {
	d, is := o.(*v1alpha1.Decision)
	if !is {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: d.Namespace, Name: d.Spec.Run}}}
}
