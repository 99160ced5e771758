package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/apierr"
)

// +kubebuilder:rbac:groups=deckhand.dev,resources=schedules,verbs=get;list;watch
// +kubebuilder:rbac:groups=deckhand.dev,resources=schedules/status,verbs=patch
// +kubebuilder:rbac:groups=deckhand.dev,resources=schedules/finalizers,verbs=update
// +kubebuilder:rbac:groups=deckhand.dev,resources=runs,verbs=get;list;watch;create;delete;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// A Reconciler makes Runs by the clock.
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

// concurrency is how many Schedules move at once: many have the same hour.
const concurrency = 4

// Setup has the manager run the Reconciler.
func Setup(mgr ctrl.Manager, now func() time.Time) error {
	r := New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("deckhand"), now)
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Schedule{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&v1alpha1.Run{}, builder.WithPredicates(runEnded)).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(apierr.RequeueConflicts(reconcile.AsReconciler(mgr.GetClient(), r)))
}

// Reconcile moves one Schedule a single step: look, decide, act, report.
func (r *Reconciler) Reconcile(ctx context.Context, s *v1alpha1.Schedule) (ctrl.Result, error) {
	if !s.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // owner references do the rest
	}
	seen, err := r.look(ctx, s)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observing Schedule: %w", err)
	}
	next, acted := r.act(ctx, seen, decide(seen))
	if apierr.IsConflict(acted) {
		return ctrl.Result{}, acted // what was seen is old
	}
	if err := r.report(ctx, seen, next); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(errors.Join(err, acted))
	}
	if acted != nil && !apierr.IsRefusal(acted) {
		return ctrl.Result{}, acted
	}
	return ctrl.Result{RequeueAfter: wakes(seen, next)}, nil
}

// runEnded lets Runs through that begin or stop to count.
var runEnded = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool { return finished(e.ObjectOld) != finished(e.ObjectNew) },
}

func finished(o client.Object) bool {
	run, is := o.(*v1alpha1.Run)
	return is && run.Status.CompletionTime != nil
}
