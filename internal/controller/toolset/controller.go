package toolset

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/apierr"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/internal/statuspatch"
)

// +kubebuilder:rbac:groups=deckhand.dev,resources=toolsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=deckhand.dev,resources=toolsets/status,verbs=patch

// A Reconciler says whether Toolsets are Ready.
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
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Toolset{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(apierr.RequeueConflicts(reconcile.AsReconciler(mgr.GetClient(), New(mgr.GetClient(), now))))
}

// Reconcile reports on one Toolset. There is nothing to look at but itself, and
// nothing to do.
func (r *Reconciler) Reconcile(ctx context.Context, t *v1alpha1.Toolset) (ctrl.Result, error) {
	return ctrl.Result{}, statuspatch.Apply(ctx, r.client, t, t.Status, statusOf(t, decide(t), metav1.NewTime(r.now())))
}

// decide is Ready, or what is wrong.
func decide(t *v1alpha1.Toolset) metav1.Condition {
	if p := snapshot.CheckToolset(t); p != nil {
		return metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: p.Reason, Message: p.Message}
	}
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady, Message: "Valid; Runs check server and Secrets"}
}

func statusOf(t *v1alpha1.Toolset, ready metav1.Condition, now metav1.Time) v1alpha1.ToolsetStatus {
	return v1alpha1.ToolsetStatus{
		ObservedGeneration: t.Generation,
		Conditions:         statuspatch.MergeConditions(t.Status.Conditions, now, t.Generation, statuspatch.ReadyConditions(ready)...),
	}
}
