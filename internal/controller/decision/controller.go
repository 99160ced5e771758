package decision

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	"github.com/deckhand-dev/deckhand/internal/apierr"
	"github.com/deckhand-dev/deckhand/internal/decisions"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Some clusters let only who may delete an object say who owns it; nothing here
// deletes a Decision.
// +kubebuilder:rbac:groups=deckhand.dev,resources=decisions,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=deckhand.dev,resources=decisions/status,verbs=patch
// +kubebuilder:rbac:groups=deckhand.dev,resources=runs,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// A Reconciler says what became of Decisions.
type Reconciler struct {
	client client.Client
	live   client.Reader // the API server itself, not the cache
	events events.EventRecorder
	now    func() time.Time
}

// New is a Reconciler; Setup runs it.
func New(c client.Client, live client.Reader, recorder events.EventRecorder, now func() time.Time) *Reconciler {
	return &Reconciler{client: c, live: live, events: recorder, now: now}
}

// Setup has the manager run the Reconciler.
func Setup(ctx context.Context, mgr ctrl.Manager, now func() time.Time) error {
	r := New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("deckhand"), now)
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Decision{}, v1alpha1.DecisionsByRun, byRun); err != nil {
		return fmt.Errorf("indexing Decisions: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Decision{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Run{}, handler.EnqueueRequestsFromMapFunc(r.ofRun), builder.WithPredicates(runSpoke)).
		Complete(apierr.RequeueConflicts(reconcile.AsReconciler(mgr.GetClient(), r)))
}

// byRun is the index of Decisions by their Run.
func byRun(o client.Object) []string {
	d, is := o.(*v1alpha1.Decision)
	if !is {
		return nil
	}
	return []string{d.Spec.Run}
}

// Reconcile reports on one Decision: look, decide, act, report.
func (r *Reconciler) Reconcile(ctx context.Context, d *v1alpha1.Decision) (ctrl.Result, error) {
	if decisions.IsFinal(d) || !d.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	seen, err := r.look(ctx, d)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observing Decision: %w", err)
	}
	acted := r.act(ctx, seen)
	if apierr.IsConflict(acted) {
		return ctrl.Result{}, acted // what was seen is old
	}
	applied := decide(seen)
	if acted != nil {
		applied.Message = task.Cut(strings.TrimSpace(applied.Message+". "+apierr.Describe(acted)), task.MaxMessage)
	}
	return ctrl.Result{}, errors.Join(acted, r.report(ctx, seen, statusOf(seen, applied)))
}

// ofRun are the Decisions on a Run of which it is not known what became.
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

// runSpoke lets a Run through when what it asks changed, or what it says that
// it did, or when it ends.
var runSpoke = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false }, // each Decision is looked at itself
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, isRun := e.ObjectOld.(*v1alpha1.Run)
		is, alsoRun := e.ObjectNew.(*v1alpha1.Run)
		return isRun && alsoRun && spokenBy(was) != spokenBy(is)
	},
}

// spoken is the part of a Run that matters to Decisions.
type spoken struct {
	completed, deleted bool
	left               bool // its runner did
	attempt, reported  int32
	asked, decided     string
}

func spokenBy(r *v1alpha1.Run) spoken {
	s := spoken{completed: r.Status.CompletionTime != nil, deleted: r.DeletionTimestamp != nil}
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
