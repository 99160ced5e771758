package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/apierr"
	"github.com/deckhand-dev/deckhand/internal/gc"
	"github.com/deckhand-dev/deckhand/internal/refs"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// +kubebuilder:rbac:groups=deckhand.dev,resources=agents;models;toolsets;runs,verbs=get;list;watch
// +kubebuilder:rbac:groups=deckhand.dev,resources=agents/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;delete

// A Reconciler says whether Agents are Ready and tidies up after them.
type Reconciler struct {
	client client.Client
	now    func() time.Time
}

// New is a Reconciler; Setup runs it.
func New(c client.Client, now func() time.Time) *Reconciler {
	return &Reconciler{client: c, now: now}
}

// Setup has the manager run the Reconciler.
func Setup(ctx context.Context, mgr ctrl.Manager, now func() time.Time) error {
	r := New(mgr.GetClient(), now)
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Run{}, gc.UnfinishedRunsByRevision, gc.IndexUnfinishedRun); err != nil {
		return fmt.Errorf("indexing Runs: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Agent{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Agent{}, handler.EnqueueRequestsFromMapFunc(r.reachingAgent), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Model{}, handler.EnqueueRequestsFromMapFunc(r.reachingModel), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Toolset{}, handler.EnqueueRequestsFromMapFunc(r.reachingToolset), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Run{}, handler.EnqueueRequestsFromMapFunc(agentOfRun), builder.WithPredicates(gc.RunReleasedRevision)).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.neededBy), builder.WithPredicates(gc.WorkflowRevisionDeleted)).
		Complete(apierr.RequeueConflicts(r))
}

// Reconcile reports on one Agent and removes what it left behind: look, decide,
// act, report. It takes a request, not an object, because an Agent that is gone
// leaves versions behind.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	seen, err := r.look(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observing Agent: %w", err)
	}
	next := decide(seen)
	removed := gc.DeleteRevisions(ctx, r.client, next.remove)
	if err := errors.Join(removed, r.report(ctx, seen, next.telling(removed))); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: next.wake}, nil
}

// reachingAgent are the other Agents that may reach one that changed.
func (r *Reconciler) reachingAgent(ctx context.Context, changed client.Object) []reconcile.Request {
	names, err := refs.AgentsUsingAgent(ctx, r.client, changed.GetNamespace(), changed.GetName())
	if err != nil {
		return nil // the cache is closing
	}
	return requests(changed.GetNamespace(), slices.DeleteFunc(names, func(n string) bool { return n == changed.GetName() }))
}

// reachingModel are the Agents that may reach a Model that changed.
func (r *Reconciler) reachingModel(ctx context.Context, changed client.Object) []reconcile.Request {
	_, names, err := refs.UsersOfModel(ctx, r.client, changed.GetNamespace(), changed.GetName())
	if err != nil {
		return nil // the cache is closing
	}
	return requests(changed.GetNamespace(), names)
}

// reachingToolset are the Agents that may reach a Toolset that changed.
func (r *Reconciler) reachingToolset(ctx context.Context, changed client.Object) []reconcile.Request {
	names, err := refs.AgentsUsingToolset(ctx, r.client, changed.GetNamespace(), changed.GetName())
	if err != nil {
		return nil // the cache is closing
	}
	return requests(changed.GetNamespace(), names)
}

func requests(namespace string, names []string) []reconcile.Request {
	var out []reconcile.Request
	for _, name := range names {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}})
	}
	return out
}

func agentOfRun(_ context.Context, o client.Object) []reconcile.Request {
	run, is := o.(*v1alpha1.Run)
	if !is || run.Spec.Agent == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: run.Namespace, Name: run.Spec.Agent}}}
}

// neededBy are the Agents of the versions that a Workflow's version needed.
func (r *Reconciler) neededBy(ctx context.Context, gone client.Object) []reconcile.Request {
	cm, is := gone.(*corev1.ConfigMap)
	if !is {
		return nil
	}
	var names []string
	for _, hash := range workflow.Needs(cm) {
		var needed corev1.ConfigMap
		if r.client.Get(ctx, client.ObjectKey{Namespace: cm.Namespace, Name: snapshot.Name(hash)}, &needed) != nil {
			continue
		}
		if v, err := snapshot.Read(&needed, hash); err == nil {
			names = append(names, v.Agent.Name)
		}
	}
	return requests(cm.Namespace, names)
}
