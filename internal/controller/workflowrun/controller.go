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

// A Reconciler reconciles Runs of Workflows.
type Reconciler struct {
	client        client.Client
	live          client.Reader // the API server itself, not the cache
	statusUpdater runstatus.Updater
	defaultTTL    time.Duration
	policies      policyChecker
	revisions     *revisionCache
	now           func() time.Time
}

// policyChecker returns the admission policies that are missing; empty: none.
type policyChecker interface {
	Missing(namespace string) (policies string, known bool)
}

// Options configure a Reconciler for its installation.
type Options struct {
	Guard policyChecker
	Spans runstatus.Spans // nil: there are no traces
	// DefaultTTL is the TTL of Runs without one; 0: they are kept.
	DefaultTTL time.Duration
	// Concurrency is how many Runs are reconciled in parallel; 0: the default.
	Concurrency int
	Now         func() time.Time
}

// New returns a Reconciler; Setup runs it.
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

// defaultConcurrency is how many Runs are reconciled in parallel.
const defaultConcurrency = 4

// byWorkflow is the index of Runs that have not started yet, by their Workflow.
const byWorkflow = "unbegun-by-workflow"

// Setup adds a Reconciler to the manager.
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
		Watches(&v1alpha1.Run{}, handler.EnqueueRequestsFromMapFunc(r.retrying), builder.WithPredicates(sourceChanged)).
		Watches(&v1alpha1.Workflow{}, handler.EnqueueRequestsFromMapFunc(r.waitingFor)).
		Watches(&v1alpha1.Decision{}, handler.EnqueueRequestsFromMapFunc(runsOfDecision), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, decisions.BecameFinal, decisions.BecameProtected))).
		WithOptions(controller.Options{MaxConcurrentReconciles: cmp.Or(o.Concurrency, defaultConcurrency)}).
		Complete(apierr.RequeueConflicts(reconcile.AsReconciler(mgr.GetClient(), r)))
}

// Reconcile moves one Run a single step: observe, decide, apply, update the status. decide runs again on the results,
// to report which children were created and what failed.
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
		seen = seen.withFacts(r.apply(ctx, seen, next))
		if len(next.create) > 0 || seen.failure != nil {
			next = decideAgain(seen)
		}
	}
	return r.updateStatus(ctx, seen, next)
}

// decideAgain decides on the results of a plan, to report them. The next Reconcile sets the desired states that follow
// from them.
func decideAgain(after state) plan {
	p := decide(after)
	if len(p.setStates) > 0 {
		p.wake = earlier(p.wake, nextBatchDelay)
	}
	return p
}

// unbegunByWorkflow returns the key of a Run in the index byWorkflow.
func unbegunByWorkflow(o client.Object) []string {
	run, is := o.(*v1alpha1.Run)
	if !is || run.Spec.Workflow == "" || run.Status.WorkflowRevision != "" || run.Status.CompletionTime != nil {
		return nil
	}
	return []string{run.Spec.Workflow}
}

// waitingFor returns the Runs that wait for a Workflow. The status of a Workflow changes whenever an object that it
// names does, through its own controller.
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

// runsOfDecision returns the Run that a Decision is for, and the Runs that reuse it.
func runsOfDecision(_ context.Context, o client.Object) []reconcile.Request {
	d, is := o.(*v1alpha1.Decision)
	if !is {
		return nil
	}
	out := []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: d.Namespace, Name: d.Spec.Run}}}
	for _, o := range decisions.Owners(d) {
		if o.Name != d.Spec.Run {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: d.Namespace, Name: o.Name}})
		}
	}
	return out
}
