package workflow

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
)

// +kubebuilder:rbac:groups=deckhand.dev,resources=workflows;agents;models;toolsets;runs,verbs=get;list;watch
// +kubebuilder:rbac:groups=deckhand.dev,resources=workflows/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;delete

// A Reconciler says whether Workflows are Ready and tidies up after them.
type Reconciler struct {
	client client.Client
	now    func() time.Time
}

// New is a Reconciler; Setup runs it. The client has the index
// gc.UnfinishedRunsByRevision.
func New(c client.Client, now func() time.Time) *Reconciler {
	return &Reconciler{client: c, now: now}
}

// Setup has the manager run the Reconciler. The controller of Agents makes the
// index that it needs.
func Setup(mgr ctrl.Manager, now func() time.Time) error {
	r := New(mgr.GetClient(), now)
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Workflow{}, changed).
		Watches(&v1alpha1.Workflow{}, handler.EnqueueRequestsFromMapFunc(r.reachingWorkflow), changed).
		Watches(&v1alpha1.Agent{}, handler.EnqueueRequestsFromMapFunc(r.reachingAgent), changed).
		Watches(&v1alpha1.Model{}, handler.EnqueueRequestsFromMapFunc(r.reachingModel), changed).
		Watches(&v1alpha1.Toolset{}, handler.EnqueueRequestsFromMapFunc(r.reachingToolset), changed).
		Watches(&v1alpha1.Run{}, handler.EnqueueRequestsFromMapFunc(workflowOfRun), builder.WithPredicates(gc.RunReleasedRevision)).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.neededBy), builder.WithPredicates(gc.WorkflowRevisionDeleted)).
		Complete(apierr.RequeueConflicts(r))
}

// Reconcile reports on one Workflow and removes what it left behind: look,
// decide, act, report. It takes a request, not an object, because a Workflow that
// is gone leaves versions behind.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	seen, err := r.look(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observing Workflow: %w", err)
	}
	next := decide(seen)
	removed := gc.DeleteRevisions(ctx, r.client, next.remove)
	if err := errors.Join(removed, r.report(ctx, seen, next.telling(removed))); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: next.wake}, nil
}

func requests(namespace string, names []string) []reconcile.Request {
	var out []reconcile.Request
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}})
	}
	return out
}
