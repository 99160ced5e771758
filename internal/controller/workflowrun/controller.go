package workflowrun

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/cluster/backlog"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// +kubebuilder:rbac:groups=deckhand.dev,resources=runs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=deckhand.dev,resources=runs/status,verbs=patch
// +kubebuilder:rbac:groups=deckhand.dev,resources=runs/finalizers,verbs=update
// +kubebuilder:rbac:groups=deckhand.dev,resources=workflows;agents;models;toolsets;decisions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// A Reconciler moves the Runs of workflows.
type Reconciler struct {
	client        client.Client
	live          client.Reader // the API server itself, not the cache
	statusUpdater runstatus.Updater
	defaultTTL    time.Duration
	policies      policyChecker
	revisions     *revisionCache
	now           func() time.Time
}

// policyChecker knows what keeps Runs from being safe; empty: nothing.
type policyChecker interface {
	Missing(namespace string) (policies string, known bool)
}

// Options are what a Reconciler needs to know of its installation.
type Options struct {
	Guard policyChecker
	Spans runstatus.Spans // nil: there are no traces
	// DefaultTTL is the TTL of Runs that say nothing; 0: they are kept.
	DefaultTTL time.Duration
	// Concurrency is how many Runs are reconciled at a time; 0 means the default.
	Concurrency int
	Now         func() time.Time
}

// New is a Reconciler; Setup runs it.
func New(c client.Client, live client.Reader, recorder events.EventRecorder, o Options) *Reconciler {
	return &Reconciler{
		client:        c,
		live:          live,
		statusUpdater: runstatus.Updater{Client: c, Events: recorder, Spans: o.Spans},
		defaultTTL:    o.DefaultTTL,
		policies:      o.Guard,
		revisions:     &revisionCache{},
		now:           o.Now,
	}
}

// defaultConcurrency is how many Runs move at once.
const defaultConcurrency = 4

// byWorkflow indexes Runs that have not begun yet by their Workflow.
const byWorkflow = "unbegun-by-workflow"

// Setup has the manager run the Reconciler.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	r := New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("deckhand"), o)
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Run{}, byWorkflow, unbegunByWorkflow); err != nil {
		return fmt.Errorf("indexing Runs: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("workflowrun").
		For(&v1alpha1.Run{}, builder.WithPredicates(ofWorkflows, runChanged)).
		Watches(&v1alpha1.Run{}, backlog.Handler(), builder.WithPredicates(ofWorkflows)).
		Owns(&v1alpha1.Run{}, builder.WithPredicates(childChanged)).
		Watches(&v1alpha1.Workflow{}, handler.EnqueueRequestsFromMapFunc(r.waitingFor)).
		Watches(&v1alpha1.Decision{}, handler.EnqueueRequestsFromMapFunc(runOfDecision), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, decisions.BecameFinal, decisions.BecameProtected))).
		WithOptions(controller.Options{MaxConcurrentReconciles: cmp.Or(o.Concurrency, defaultConcurrency)}).
		Complete(apierr.RequeueConflicts(reconcile.AsReconciler(mgr.GetClient(), r)))
}

// Reconcile moves one Run a single step: observe, decide, apply, update the status. It decides
// again on which children were created and what failed, to report that.
func (r *Reconciler) Reconcile(ctx context.Context, run *v1alpha1.Run) (ctrl.Result, error) {
	if run.Spec.Workflow == "" {
		return ctrl.Result{}, nil // another controller reconciles it
	}
	seen, err := r.observe(ctx, run)
	if err != nil {
		err = fmt.Errorf("observing Run: %w", err)
		if !apierr.IsRefusal(err) {
			return ctrl.Result{}, err
		}
		seen.failure = &requestFailure{err: err}
	}
	next := decide(seen)
	if seen.failure == nil {
		seen, err = r.apply(ctx, seen, next)
		if err != nil {
			seen.failure = &requestFailure{plan: next, err: err}
		}
		if len(next.create) > 0 || err != nil {
			next = decideAgain(seen)
		}
	}
	return r.updateStatus(ctx, seen, next)
}

// decideAgain decides on what came of a plan, to report it. The desired states that follow from
// that are set by the next Reconcile.
func decideAgain(after state) plan {
	p := decide(after)
	if len(p.setStates) > 0 {
		p.wake = earlier(p.wake, nextBatchDelay)
	}
	return p
}

// unbegunByWorkflow is the index of Runs that wait for their Workflow.
func unbegunByWorkflow(o client.Object) []string {
	run, is := o.(*v1alpha1.Run)
	if !is || run.Spec.Workflow == "" || run.Status.WorkflowRevision != "" || run.Status.CompletionTime != nil {
		return nil
	}
	return []string{run.Spec.Workflow}
}

// waitingFor are the Runs that wait for a Workflow. It changes whenever something
// that it names does: its own controller sees to that.
func (r *Reconciler) waitingFor(ctx context.Context, w client.Object) []reconcile.Request {
	var runs v1alpha1.RunList
	if r.client.List(ctx, &runs, client.InNamespace(w.GetNamespace()), client.MatchingFields{byWorkflow: w.GetName()}, client.UnsafeDisableDeepCopy) != nil {
		return nil // the cache is closing
	}
	var out []reconcile.Request
	for i := range runs.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&runs.Items[i])})
	}
	return out
}

func runOfDecision(_ context.Context, o client.Object) []reconcile.Request {
	d, is := o.(*v1alpha1.Decision)
	if !is {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: d.Namespace, Name: d.Spec.Run}}}
}
