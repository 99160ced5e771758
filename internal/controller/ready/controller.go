package ready

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/gc"
)

// +kubebuilder:rbac:groups=deckhand.dev,resources=agents;models;toolsets;workflows;runs,verbs=get;list;watch
// +kubebuilder:rbac:groups=deckhand.dev,resources=agents/status;models/status;toolsets/status;workflows/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// A kind has the differences between the controllers: T is the object, R the objects that it refers to.
type kind[T client.Object, R any] struct {
	name      string
	newObject func() T
	// read reads the objects to which an object refers.
	read func(ctx context.Context, c client.Reader, object T) (R, error)
	// check validates an object at a time, without I/O.
	check func(object T, refs R, now time.Time) result
	// status returns the status of an object and the fields in it that all kinds have.
	status func(object T) statusFields
	// revisionLabel is the label of stored revisions that depends on the name of their object; empty: the kind has no
	// revisions.
	revisionLabel string
	watches       []watch
	// newList is set if the kind depends on the list of prices.
	newList func() client.ObjectList
}

// timeless adapts a check that does not depend on the time.
func timeless[T client.Object, R any](check func(T, R) result) func(T, R, time.Time) result {
	return func(object T, refs R, _ time.Time) result { return check(object, refs) }
}

// A reconciler sets Ready of the objects of one kind.
type reconciler[T client.Object, R any] struct {
	kind[T, R]
	environment
}

// environment is shared by the reconcilers of all kinds.
type environment struct {
	client client.Client
	events events.EventRecorder
	now    func() time.Time
}

// Reconcilers returns the reconcilers by kind; Setup runs them. The client has the indexes of
// package gc, and RunsByModel.
func Reconcilers(c client.Client, recorder events.EventRecorder, now func() time.Time) map[string]reconcile.Reconciler {
	env := environment{c, recorder, now}
	return map[string]reconcile.Reconciler{
		agents.name:    newReconciler(agents, env),
		models.name:    newReconciler(models, env),
		toolsets.name:  newReconciler(toolsets, env),
		workflows.name: newReconciler(workflows, env),
	}
}

func newReconciler[T client.Object, R any](k kind[T, R], env environment) *reconciler[T, R] {
	return &reconciler[T, R]{kind: k, environment: env}
}

// Setup adds the controllers of all kinds to the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, now func() time.Time, prices *PriceSignal) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Run{}, gc.UnfinishedRunsByRevision, gc.IndexUnfinishedRun); err != nil {
		return fmt.Errorf("indexing Runs: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, gc.LivePodsByRevision, gc.IndexLivePod); err != nil {
		return fmt.Errorf("indexing Pods: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Run{}, RunsByModel, IndexRunByModel); err != nil {
		return fmt.Errorf("indexing Runs by Model: %w", err)
	}
	env := environment{mgr.GetClient(), mgr.GetEventRecorder("deckhand"), now}
	return errors.Join(setup(mgr, agents, env, prices), setup(mgr, models, env, prices), setup(mgr, toolsets, env, prices), setup(mgr, workflows, env, prices))
}

func setup[T client.Object, R any](mgr ctrl.Manager, k kind[T, R], env environment, prices *PriceSignal) error {
	b := ctrl.NewControllerManagedBy(mgr).For(k.newObject(), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	for _, w := range k.watches {
		b = b.Watches(w.object, w.handler(mgr.GetClient()), builder.WithPredicates(w.changes))
	}
	if k.newList != nil {
		b = b.WatchesRawSource(prices.source(k.name, mgr.GetClient(), k.newList))
	}
	return b.Complete(apierr.RequeueConflicts(newReconciler(k, env)))
}

// Reconcile sets Ready of one object and deletes its unneeded revisions. It takes a
// request, not an object, because the revisions of a deleted object remain.
func (r *reconciler[T, R]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observing %s: %w", r.name, err)
	}
	next := r.decide(s)
	if s.facts = r.apply(ctx, s, next); s.notDeleted != nil {
		next = r.decide(s)
	}
	if err := errors.Join(s.notDeleted, r.updateStatus(ctx, s, next)); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: next.wake}, nil
}
