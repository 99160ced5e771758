package schedule

import (
	"cmp"
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
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
)

// +kubebuilder:rbac:groups=deckhand.dev,resources=schedules,verbs=get;list;watch
// +kubebuilder:rbac:groups=deckhand.dev,resources=schedules/status,verbs=patch
// +kubebuilder:rbac:groups=deckhand.dev,resources=schedules/finalizers,verbs=update
// +kubebuilder:rbac:groups=deckhand.dev,resources=runs,verbs=get;list;watch;create;delete;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// A Reconciler reconciles Schedules.
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

// defaultConcurrency is how many Schedules are reconciled in parallel: many are due at the same hour.
const defaultConcurrency = 4

// Setup adds a Reconciler to the manager. concurrency is how many Schedules it reconciles in parallel; 0: the default.
func Setup(mgr ctrl.Manager, concurrency int, now func() time.Time) error {
	r := New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("deckhand"), now)
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Schedule{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&v1alpha1.Run{}, builder.WithPredicates(runEnded)).
		WithOptions(controller.Options{MaxConcurrentReconciles: cmp.Or(concurrency, defaultConcurrency)}).
		Complete(apierr.RequeueConflicts(reconcile.AsReconciler(mgr.GetClient(), r)))
}

// Reconcile moves one Schedule a single step. decide runs twice: on the observed state, and on the results of applying
// the plan.
func (r *Reconciler) Reconcile(ctx context.Context, schedule *v1alpha1.Schedule) (ctrl.Result, error) {
	if !schedule.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // its Runs are deleted by their owner references
	}
	s, err := r.observe(ctx, schedule)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("observing Schedule: %w", err)
	}
	if s.facts = r.apply(ctx, s, decide(s)); apierr.IsConflict(s.failed) {
		return ctrl.Result{}, s.failed // the cache is old
	}
	next := decide(s)
	if err := r.updateStatus(ctx, s, next); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(errors.Join(err, s.failed))
	}
	if s.failed != nil && !apierr.IsRefusal(s.failed) {
		return ctrl.Result{}, s.failed
	}
	return ctrl.Result{RequeueAfter: wakeAfter(s, next)}, nil
}

// runEnded passes on events of Runs that finish.
var runEnded = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool { return finished(e.ObjectOld) != finished(e.ObjectNew) },
}

func finished(o client.Object) bool {
	run, is := o.(*v1alpha1.Run)
	return is && run.Status.CompletionTime != nil
}
