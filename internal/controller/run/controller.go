package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/cluster/backlog"
	"github.com/deckhand-dev/deckhand/internal/run/continuing"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/run/objectcache"
	"github.com/deckhand-dev/deckhand/internal/run/queue"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// +kubebuilder:rbac:groups=deckhand.dev,resources=runs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=deckhand.dev,resources=runs/status,verbs=patch
// +kubebuilder:rbac:groups=deckhand.dev,resources=runs/finalizers,verbs=update
// +kubebuilder:rbac:groups=deckhand.dev,resources=agents;models;decisions;toolsets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies;validatingadmissionpolicybindings,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// A Reconciler reconciles Runs of Agents.
type Reconciler struct {
	client          client.Client
	live            client.Reader // the API server itself, not the cache
	podCaches       podCaches
	revisions       revisions
	volumes         volumes
	childRuns       childRuns
	events          events.EventRecorder
	policies        policyChecker
	serviceAccounts serviceAccounts
	networkPolicies networkPolicies // nil: no NetworkPolicies are made
	unrecorded      *unrecorded
	runner          runnerpod.Image
	podDefaults     runnerpod.Defaults
	defaultTTL      time.Duration
	spans           runstatus.Spans
	now             func() time.Time
	queue           *queue.Queue
}

// policyChecker returns the admission policies that are missing for a namespace.
type policyChecker interface {
	Missing(namespace string) (policies string, known bool)
}

// serviceAccounts creates the ServiceAccount of runners in a namespace, with its permissions.
type serviceAccounts interface {
	Ensure(ctx context.Context, namespace string) error
}

// Options configure a Reconciler for its installation.
type Options struct {
	RunnerImage      string
	RunnerPullPolicy string
	PodDefaults      runnerpod.Defaults
	// DefaultTTL is the TTL of Runs without one; 0: they are kept.
	DefaultTTL      time.Duration
	Guard           policyChecker
	Identity        serviceAccounts
	NetworkPolicies networkPolicies // nil: no NetworkPolicies are created
	Spans           runstatus.Spans // nil: there are no traces
	// Ended caches the metadata of [EndedPods]; nil: the client has all pods.
	Ended cache.Cache
	// Concurrency is how many Runs are reconciled in parallel; 0: the default.
	Concurrency int
	Now         func() time.Time
}

// New returns a Reconciler; Setup runs it.
func New(c client.Client, live client.Reader, recorder events.EventRecorder, o Options) *Reconciler {
	r := &Reconciler{
		events:          recorder,
		policies:        o.Guard,
		serviceAccounts: o.Identity,
		networkPolicies: o.NetworkPolicies,
		unrecorded:      newUnrecorded(),
		spans:           o.Spans,
		podDefaults:     o.PodDefaults,
		defaultTTL:      o.DefaultTTL,
		runner:          runnerpod.Image{Name: o.RunnerImage, PullPolicy: corev1.PullPolicy(o.RunnerPullPolicy)},
		now:             o.Now,
		queue:           queue.New(c),
	}
	var ended client.Reader // not a nil Cache in it
	if o.Ended != nil {
		ended = o.Ended
	}
	r.connect(c, live, ended)
	return r
}

// connect gives the Reconciler and its parts their clients.
func (r *Reconciler) connect(c client.Client, live, ended client.Reader) {
	r.client, r.live = c, live
	r.podCaches = podCaches{client: c, ended: ended, live: live}
	r.revisions = revisions{client: c, live: live}
	r.volumes = volumes{client: c, live: live}
	r.childRuns = childRuns{client: c, live: live}
}

// defaultConcurrency is how many Runs are reconciled in parallel. Each step is a few requests, so nearly all of its
// time is spent in the API server. In a burst of new Runs, twice as many workers create the pods earlier, although
// users create Runs at the same time.
const defaultConcurrency = 16

// byAgent indexes Runs that have not started yet by their Agent.
const byAgent = "unstarted-by-agent"

// Setup adds a Reconciler to the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	r := New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("deckhand"), o)
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Run{}, byAgent, unstartedByAgent); err != nil {
		return fmt.Errorf("indexing Runs: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Run{}, queue.UnfinishedByAgent, queue.IndexUnfinishedByAgent); err != nil {
		return fmt.Errorf("indexing Runs: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Run{}, continuing.UnfinishedBySource, continuing.IndexUnfinishedBySource); err != nil {
		return fmt.Errorf("indexing Runs: %w", err)
	}
	if err := mgr.Add(manager.RunnableFunc(r.recordOnStop)); err != nil {
		return fmt.Errorf("recording attempts when the operator is stopped: %w", err)
	}
	find := runFinder{client: mgr.GetClient()}
	build := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Run{}, builder.WithPredicates(ofAgents, runChanged)).
		Watches(&v1alpha1.Run{}, backlog.Handler(), builder.WithPredicates(ofAgents)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(runsOfPod), builder.WithPredicates(podChanged)).
		WatchesRawSource(source.Kind(o.Ended, client.Object(objectcache.PodMetadata()), handler.EnqueueRequestsFromMapFunc(runsOfPod), endedPodChanged)).
		Owns(&v1alpha1.Run{}, builder.WithPredicates(isAgentChild, childChanged)).
		Watches(&v1alpha1.Run{}, handler.EnqueueRequestsFromMapFunc(find.childrenOf), builder.WithPredicates(runFinished)).
		Watches(&v1alpha1.Run{}, handler.EnqueueRequestsFromMapFunc(find.continuing), builder.WithPredicates(sourceChanged)).
		Watches(&v1alpha1.Run{}, handler.EnqueueRequestsFromMapFunc(r.queue.Next), builder.WithPredicates(ofAgents, queue.ReleasesPlace)).
		Watches(&v1alpha1.Agent{}, handler.EnqueueRequestsFromMapFunc(find.waitingForAgent), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Model{}, handler.EnqueueRequestsFromMapFunc(find.waitingForModel), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Toolset{}, handler.EnqueueRequestsFromMapFunc(find.waitingForToolset), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Decision{}, handler.EnqueueRequestsFromMapFunc(runOfDecision), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, decisions.BecameFinal, decisions.BecameProtected))).
		WithOptions(controller.Options{MaxConcurrentReconciles: cmp.Or(o.Concurrency, defaultConcurrency)})
	if o.NetworkPolicies != nil { // otherwise the operator has no right to watch them
		build = build.Watches(&networkingv1.NetworkPolicy{}, handler.EnqueueRequestsFromMapFunc(find.limitedBy), builder.WithPredicates(networkPolicyLost))
	}
	return build.Complete(apierr.RequeueConflicts(reconcile.AsReconciler(mgr.GetClient(), r)))
}

// Reconcile moves one Run a single step: observe, decide, apply, update the status. If the API server refuses a
// request, decide runs again with that fact.
func (r *Reconciler) Reconcile(ctx context.Context, run *v1alpha1.Run) (ctrl.Result, error) {
	if run.Spec.Workflow != "" {
		return ctrl.Result{}, nil // another controller reconciles it
	}
	seen, err := r.observe(ctx, run)
	if err != nil {
		err = fmt.Errorf("observing Run: %w", err)
		if !apierr.IsRefusal(err) {
			return ctrl.Result{}, err
		}
		seen.facts = failed(plan{}, err)
	}
	next := decide(seen)
	for range 3 { // the first attempt, its pod, and what follows from a refusal
		if seen.facts.failure != nil {
			break
		}
		seen.facts = r.apply(ctx, seen, next)
		if !seen.facts.needDecision() {
			break
		}
		seen = seen.withFacts()
		next = decide(seen)
	}
	lost := r.restoreNetworkPolicy(ctx, seen)
	result, err := r.updateStatus(ctx, seen, next)
	return result, errors.Join(err, lost)
}

var errNoImage = errors.New("the runner's image is not set: --runner-image")

// Validate returns an error for invalid settings of an installation.
func (o Options) Validate() error {
	if o.RunnerImage == "" {
		return errNoImage
	}
	return nil
}
