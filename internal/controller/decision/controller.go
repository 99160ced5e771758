package decision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
)

// With the admission plugin OwnerReferencesPermissionEnforcement only a user who may delete an
// object may set its owner. The operator deletes no Decision.
// +kubebuilder:rbac:groups=deckhand.dev,resources=decisions,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=deckhand.dev,resources=decisions/status,verbs=patch
// +kubebuilder:rbac:groups=deckhand.dev,resources=runs,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// A Reconciler reconciles Decisions.
type Reconciler struct {
	client client.Client
	live   client.Reader // the API server itself, not the cache
	events events.EventRecorder
	now    func() time.Time
}

// New returns a Reconciler; Setup runs it.
func New(c client.Client, live client.Reader, recorder events.EventRecorder, now func() time.Time) *Reconciler {
	return &Reconciler{client: c, live: live, events: recorder, now: now}
}

// Setup adds a Reconciler to the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, now func() time.Time) error {
	r := New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("deckhand"), now)
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Decision{}, v1alpha1.DecisionsByRun, byRun); err != nil {
		return fmt.Errorf("indexing Decisions: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Decision{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Run{}, handler.EnqueueRequestsFromMapFunc(r.ofRun), builder.WithPredicates(runChanged)).
		Complete(apierr.RequeueConflicts(reconcile.AsReconciler(mgr.GetClient(), r)))
}

// byRun returns the key of a Decision in the index DecisionsByRun.
func byRun(o client.Object) []string {
	d, is := o.(*v1alpha1.Decision)
	if !is {
		return nil
	}
	return []string{d.Spec.Run}
}

// Reconcile writes the state of one Decision into its status. If the Run could not be made its owner, decide runs again
// with that fact.
func (r *Reconciler) Reconcile(ctx context.Context, d *v1alpha1.Decision) (ctrl.Result, error) {
	if decisions.IsFinal(d) || !d.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	s, err := r.observe(ctx, d)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observing Decision: %w", err)
	}
	next := decide(s)
	if s.facts = r.apply(ctx, s, next); apierr.IsConflict(s.notOwned) {
		return ctrl.Result{}, s.notOwned // the cache is old
	}
	if s.notOwned != nil {
		next = decide(s)
	}
	return ctrl.Result{}, errors.Join(s.notOwned, r.updateStatus(ctx, s, next))
}

// ofRun returns the Decisions on a Run that are neither applied nor refused.
func (r *Reconciler) ofRun(ctx context.Context, run client.Object) []reconcile.Request {
	var list v1alpha1.DecisionList
	if r.client.List(ctx, &list, client.InNamespace(run.GetNamespace()), client.MatchingFields{v1alpha1.DecisionsByRun: run.GetName()}) != nil {
		return nil // the cache is closing
	}
	var out []reconcile.Request
	for i := range list.Items {
		if !decisions.IsFinal(&list.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// runChanged passes on events of a Run when its requests or applied Decisions changed, or when it ended.
var runChanged = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false }, // each Decision is reconciled when it is created
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, isRun := e.ObjectOld.(*v1alpha1.Run)
		is, alsoRun := e.ObjectNew.(*v1alpha1.Run)
		return isRun && alsoRun && relevantPart(was) != relevantPart(is)
	},
}

// part has the fields of a Run on which Decisions depend.
type part struct {
	completed, deleted bool
	left               bool // the runner has ended
	attempt, reported  int32
	asked, decided     string
}

func relevantPart(r *v1alpha1.Run) part {
	s := part{completed: r.Status.CompletionTime != nil, deleted: r.DeletionTimestamp != nil}
	if a := r.Status.Attempt; a != nil {
		s.attempt = a.Number
	}
	if p := r.Status.Progress; p != nil {
		s.reported, s.left = p.Attempt, p.Result != nil
		for _, a := range p.Pending {
			s.asked += a.ID + " " + a.Kind + " " + a.Digest + "\n"
		}
		for _, d := range p.Decided {
			s.decided += d.Name + "\n"
		}
	}
	return s
}
