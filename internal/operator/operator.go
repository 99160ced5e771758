// Package operator puts the controllers, their caches and their guard together
// into one manager.
package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/labelindex"
	"github.com/deckhand-dev/deckhand/internal/controller/decision"
	"github.com/deckhand-dev/deckhand/internal/controller/ready"
	"github.com/deckhand-dev/deckhand/internal/controller/run"
	"github.com/deckhand-dev/deckhand/internal/controller/schedule"
	"github.com/deckhand-dev/deckhand/internal/controller/workflowrun"
	"github.com/deckhand-dev/deckhand/internal/operator/policycheck"
	"github.com/deckhand-dev/deckhand/internal/revision"
	"github.com/deckhand-dev/deckhand/internal/run/egress"
	"github.com/deckhand-dev/deckhand/internal/run/objectcache"
	"github.com/deckhand-dev/deckhand/internal/run/runmetrics"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/serviceaccount"
	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/internal/shared/networkcheck"
)

// Supply is the configuration that all runner pods get.
type Supply = runnerpod.Defaults

// Options are the settings of an installation.
type Options struct {
	// RunnerImage and RunnerPullPolicy are the image of the runner and when it is pulled.
	RunnerImage, RunnerPullPolicy string
	Supply                        Supply
	// NetworkPolicies creates NetworkPolicies for runner pods; APIServer is how these allow
	// the API server.
	NetworkPolicies bool
	APIServer       egress.Peers
	// NetworkCheck is the host and port at which runner pods find the listener of package
	// networkcheck. The operator listens at this port and the next, if NetworkPolicies is set.
	// Empty: it does not, and no Run shows that policies are enforced.
	NetworkCheck string
	// Namespaces are the namespaces that the operator watches; empty: all.
	Namespaces []string
	// PolicyPrefix is the prefix of the names of the release's admission policies and of the
	// runner's ClusterRole.
	PolicyPrefix string
	// ExcludedNamespaces have no admission policies, so no runner is started there.
	ExcludedNamespaces []string
	// DefaultTTL is the TTL of Runs without one; 0: they are kept. DefaultDurability is the durability of Agents
	// without one; empty: Pod.
	DefaultTTL        time.Duration
	DefaultDurability v1alpha1.Durability
	// Concurrency is how many objects are reconciled at a time.
	Concurrency Concurrency
	// LeaderElection lets one of several operators reconcile at a time; its lease is in
	// Namespace.
	LeaderElection bool
	Namespace      string
	Lease          Lease // zero means DefaultLease
	// Pod is the name of the operator's pod. An operator that starts again in it need
	// not wait for the lease of the process before it. Empty: it waits.
	Pod string
	// Prices is a list of prices that overrides the catalog.
	Prices PriceFile
	// MetricsAddress and ProbeAddress are where the operator listens; "0" disables the server.
	MetricsAddress, ProbeAddress string
	// PprofAddress is where profiles are served, on the loopback interface; empty disables them.
	PprofAddress string
	// MetricsAuthentication serves metrics over HTTPS, to users who may get the path
	// /metrics of the API server. The operator then needs to create tokenreviews and
	// subjectaccessreviews.
	MetricsAuthentication bool
	Log                   logr.Logger
}

// Concurrency is how many objects of a kind are reconciled at a time; 0 means the default.
type Concurrency struct{ Runs, WorkflowRuns, Schedules int }

// A Lease has the times of leader election. Another operator takes over after Duration. The
// leader renews the lease every RetryPeriod, and stops if it could not for RenewDeadline.
type Lease struct{ Duration, RenewDeadline, RetryPeriod time.Duration }

// DefaultLease is shorter than client-go's 15 s, so that the loss of a cluster node costs less time: another operator
// leads after Duration and up to 4.4 times RetryPeriod, in which it detects the last renewal and the end of the lease.
// Safety does not depend on the lease: an attempt is reserved by a patch that requires an unchanged resource version,
// pods have the name of their attempt, and every other patch tests the fields that it depends on. So two leaders cause
// conflicts, and nothing worse.
var DefaultLease = Lease{Duration: 7 * time.Second, RenewDeadline: 5 * time.Second, RetryPeriod: time.Second}

// Scheme returns a scheme with the kinds that the operator uses.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		return nil, err
	}
	return s, v1alpha1.AddToScheme(s)
}

// New returns a manager with all controllers.
func New(ctx context.Context, cfg *rest.Config, o Options) (ctrl.Manager, error) {
	if err := checkPprofAddress(o.PprofAddress); err != nil {
		return nil, err
	}
	scheme, err := Scheme()
	if err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	lease := cmp.Or(o.Lease, DefaultLease)
	lock, err := leaderLock(ctx, cfg, o, lease)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(runmetrics.CountWrites(cfg), ctrl.Options{
		Scheme:                              scheme,
		Logger:                              withoutLeaseError(o.Log),
		Cache:                               cacheOptions(o.Namespaces, o.DefaultDurability),
		Client:                              client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		NewClient:                           newClient,
		Controller:                          config.Controller{SkipNameValidation: new(true)}, // a process may run several operators
		Metrics:                             metricsOptions(o),
		HealthProbeBindAddress:              o.ProbeAddress,
		PprofBindAddress:                    o.PprofAddress,
		LeaderElection:                      o.LeaderElection,
		LeaderElectionID:                    leaseName(o),
		LeaderElectionNamespace:             o.Namespace,
		LeaderElectionReleaseOnCancel:       true,
		LeaderElectionResourceLockInterface: lock,
		LeaseDuration:                       &lease.Duration,
		RenewDeadline:                       &lease.RenewDeadline,
		RetryPeriod:                         &lease.RetryPeriod,
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if err := setup(ctx, mgr, o); err != nil {
		return nil, err
	}
	return mgr, addMetrics(mgr)
}

// leaseName returns the name of the lease of a release.
func leaseName(o Options) string { return o.PolicyPrefix + "." + v1alpha1.GroupVersion.Group }

// newClient returns a client whose lists by label use indexes of the cache, and which reads the data of
// ConfigMaps from the API server.
func newClient(cfg *rest.Config, o client.Options) (client.Client, error) {
	cached, err := client.New(cfg, o)
	if err != nil {
		return nil, err
	}
	o.Cache = nil
	live, err := client.New(cfg, o)
	return labelindex.Client{Client: revision.NewClient(cached, live)}, err
}

func setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	err := labelindex.Each(func(object client.Object, field string, values client.IndexerFunc) error {
		return mgr.GetFieldIndexer().IndexField(ctx, object, field, values)
	})
	if err != nil {
		return err
	}
	g := policycheck.New(mgr.GetAPIReader(), o.PolicyPrefix, o.ExcludedNamespaces, o.Log.WithName("policycheck"))
	if err := mgr.Add(g); err != nil {
		return fmt.Errorf("adding the check of admission policies: %w", err)
	}
	ended, err := endedPods(ctx, mgr, o.Namespaces)
	if err != nil {
		return fmt.Errorf("caching ended pods: %w", err)
	}
	runs := run.Options{
		Ended:            ended,
		RunnerImage:      o.RunnerImage,
		RunnerPullPolicy: o.RunnerPullPolicy,
		PodDefaults:      o.Supply,
		DefaultTTL:       o.DefaultTTL,
		Guard:            g,
		Identity:         serviceAccounts(mgr.GetClient(), o),
		Concurrency:      o.Concurrency.Runs,
		Now:              clock.Now,
	}
	if err := addNetworkPolicies(mgr, &runs, o); err != nil {
		return err
	}
	if runs.Spans, err = addTraces(mgr, o); err != nil {
		return err
	}
	if err := runs.Validate(); err != nil {
		return err
	}
	prices := ready.NewPriceSignal()
	if err := addPriceFile(mgr, o, prices.Send); err != nil {
		return err
	}
	for name, err := range map[string]error{
		"Agents, Models, Toolsets and Workflows": ready.Setup(ctx, mgr, clock.Now, prices),
		"Decision":                               decision.Setup(ctx, mgr, clock.Now),
		"Run":                                    run.Setup(ctx, mgr, runs),
		"Runs of Workflows":                      workflowrun.Setup(ctx, mgr, workflowrun.Options{Guard: g, Spans: runs.Spans, DefaultTTL: o.DefaultTTL, Concurrency: o.Concurrency.WorkflowRuns, Now: clock.Now}),
		"Schedule":                               schedule.Setup(mgr, o.Concurrency.Schedules, clock.Now),
	} {
		if err != nil {
			return fmt.Errorf("setting up the controller of %s: %w", name, err)
		}
	}
	return errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping))
}

// addNetworkPolicies creates and deletes NetworkPolicies, if they are enabled.
func addNetworkPolicies(mgr ctrl.Manager, runs *run.Options, o Options) error {
	if !o.NetworkPolicies {
		return nil
	}
	operator, err := addNetworkCheck(mgr, runs, o)
	if err != nil {
		return err
	}
	p := egress.New(mgr.GetClient(), mgr.GetAPIReader(), egress.Options{Servers: o.APIServer, Operator: operator, Now: clock.Now, Log: o.Log.WithName("egress")})
	if err := mgr.Add(p); err != nil {
		return fmt.Errorf("adding the deletion of NetworkPolicies: %w", err)
	}
	runs.NetworkPolicies = p
	return nil
}

var errNamespace = errors.New("--network-check needs the namespace of the operator: set --operator-namespace")

// addNetworkCheck listens for runner pods that test whether NetworkPolicies are enforced. It returns what the policies
// must allow for that.
func addNetworkCheck(mgr ctrl.Manager, runs *run.Options, o Options) (egress.Operator, error) {
	if o.NetworkCheck == "" {
		return egress.Operator{}, nil
	}
	port, err := networkcheck.PortOf(o.NetworkCheck)
	if err != nil {
		return egress.Operator{}, fmt.Errorf("reading --network-check: %w", err)
	}
	if o.Namespace == "" {
		return egress.Operator{}, errNamespace
	}
	s, err := networkcheck.Listen(port, clock.Now)
	if err != nil {
		return egress.Operator{}, fmt.Errorf("listening for runner pods: %w", err)
	}
	runs.PodDefaults.NetworkCheck = o.NetworkCheck
	return egress.Operator{Namespace: o.Namespace, Port: port}, mgr.Add(s)
}

// serviceAccounts creates the ServiceAccount of runners if the operator watches the whole
// cluster. For chosen namespaces the chart creates it, and the operator has no permission for
// RBAC objects.
func serviceAccounts(c client.Client, o Options) *serviceaccount.Provisioner {
	if len(o.Namespaces) > 0 {
		return nil
	}
	return serviceaccount.New(c, o.PolicyPrefix+"-runner")
}

// cacheOptions returns what the caches keep. Every kind is reduced, because users can write all of them and the memory
// of the operator is bounded. Finished pods are in the cache of [endedPods].
func cacheOptions(namespaces []string, durability v1alpha1.Durability) cache.Options {
	managed := labels.SelectorFromSet(labels.Set{"app.kubernetes.io/managed-by": "deckhand"})
	o := cache.Options{
		DefaultTransform:            cache.TransformStripManagedFields(),
		ReaderFailOnMissingInformer: false,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                   {Label: hasLabel(v1alpha1.LabelRun), Field: objectcache.LivePods, Transform: objectcache.Pod},
			&v1alpha1.Run{}:                 {Transform: objectcache.Run},
			&v1alpha1.Agent{}:               {Transform: objectcache.AgentWith(durability)},
			&v1alpha1.Model{}:               {Transform: objectcache.Model},
			&v1alpha1.Toolset{}:             {Transform: objectcache.Toolset},
			&v1alpha1.Workflow{}:            {Transform: objectcache.Workflow},
			&v1alpha1.Schedule{}:            {Transform: objectcache.Schedule},
			&v1alpha1.Decision{}:            {Transform: objectcache.Decision},
			&corev1.PersistentVolumeClaim{}: {Label: hasLabel(v1alpha1.LabelRun), Transform: objectcache.VolumeClaim},
			&corev1.ConfigMap{}:             {Label: hasLabel(v1alpha1.LabelRevision), Transform: objectcache.Revision},
			&networkingv1.NetworkPolicy{}:   {Label: hasLabel(v1alpha1.LabelEgress), Transform: objectcache.NetworkPolicy},
			&corev1.ServiceAccount{}:        {Label: managed, Transform: objectcache.IdentityOnly},
			&rbacv1.RoleBinding{}:           {Label: managed, Transform: objectcache.IdentityOnly},
		},
	}
	o.DefaultNamespaces = watched(namespaces)
	return o
}

// watched returns the namespaces of a cache; nil means all.
func watched(namespaces []string) map[string]cache.Config {
	if len(namespaces) == 0 {
		return nil
	}
	out := map[string]cache.Config{}
	for _, n := range namespaces {
		out[n] = cache.Config{}
	}
	return out
}

// endedPods returns a cache of the metadata of finished runner pods. The manager's cache has one
// field selector for each kind, which selects the other pods.
func endedPods(ctx context.Context, mgr ctrl.Manager, namespaces []string) (cache.Cache, error) {
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces:    watched(namespaces),
		DefaultLabelSelector: hasLabel(v1alpha1.LabelRun),
		DefaultFieldSelector: objectcache.EndedPods,
		DefaultTransform:     objectcache.EndedPod,
	})
	if err != nil {
		return nil, err
	}
	// The manager waits for informers that exist when it starts.
	if _, err := c.GetInformer(ctx, objectcache.PodMetadata()); err != nil {
		return nil, err
	}
	return c, mgr.Add(startedFirst{c})
}

// startedFirst makes the manager start a cache together with its own, before everything else.
type startedFirst struct{ cache.Cache }

func (s startedFirst) GetCache() cache.Cache { return s.Cache }

func hasLabel(label string) labels.Selector {
	r, err := labels.NewRequirement(label, selection.Exists, nil)
	if err != nil {
		panic("invalid label: " + err.Error())
	}
	return labels.NewSelector().Add(*r)
}

var errPprofAddress = errors.New("profiles are served on the loopback interface only, because they contain memory of the operator: set --pprof-address=127.0.0.1:6060, and use kubectl port-forward")

// checkPprofAddress refuses an address that others than users of kubectl port-forward can reach.
func checkPprofAddress(address string) error {
	if address == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("reading --pprof-address %q: %w", address, err)
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
		return fmt.Errorf("--pprof-address is %q: %w", address, errPprofAddress)
	}
	return nil
}
