package model

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/apierr"
	"github.com/deckhand-dev/deckhand/internal/refs"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/internal/statuspatch"
)

// +kubebuilder:rbac:groups=deckhand.dev,resources=models,verbs=get;list;watch
// +kubebuilder:rbac:groups=deckhand.dev,resources=models/status,verbs=patch

// A Reconciler says whether Models are Ready.
type Reconciler struct {
	client client.Client
	now    func() time.Time
}

// New is a Reconciler; Setup runs it.
func New(c client.Client, now func() time.Time) *Reconciler {
	return &Reconciler{client: c, now: now}
}

// Setup has the manager run the Reconciler.
func Setup(mgr ctrl.Manager, now func() time.Time) error {
	r := New(mgr.GetClient(), now)
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Model{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Model{}, handler.EnqueueRequestsFromMapFunc(r.leadingTo), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(apierr.RequeueConflicts(reconcile.AsReconciler(mgr.GetClient(), r)))
}

// Reconcile reports on one Model. There is nothing to look at but itself and
// where its fallbacks lead, and nothing to do.
func (r *Reconciler) Reconcile(ctx context.Context, m *v1alpha1.Model) (ctrl.Result, error) {
	models, err := refs.OfModel(ctx, r.client, m)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observing Model: %w", err)
	}
	return ctrl.Result{}, statuspatch.Apply(ctx, r.client, m, m.Status, statusOf(m, decide(m, models), metav1.NewTime(r.now())))
}

// leadingTo are the Models whose fallbacks lead to one that changed.
func (r *Reconciler) leadingTo(ctx context.Context, changed client.Object) []reconcile.Request {
	models, _, err := refs.UsersOfModel(ctx, r.client, changed.GetNamespace(), changed.GetName())
	if err != nil {
		return nil // the cache is closing
	}
	var out []reconcile.Request
	for _, name := range models {
		if name != changed.GetName() {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: changed.GetNamespace(), Name: name}})
		}
	}
	return out
}

// decide is Ready, or what is wrong.
func decide(m *v1alpha1.Model, models map[string]*v1alpha1.Model) metav1.Condition {
	if p := snapshot.CheckModel(m, models); p != nil {
		return metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: p.Reason, Message: p.Message}
	}
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady, Message: "Valid; Runs check endpoint and Secret"}
}

func statusOf(m *v1alpha1.Model, ready metav1.Condition, now metav1.Time) v1alpha1.ModelStatus {
	return v1alpha1.ModelStatus{
		ObservedGeneration: m.Generation,
		Conditions:         statuspatch.MergeConditions(m.Status.Conditions, now, m.Generation, statuspatch.ReadyConditions(ready)...),
	}
}
