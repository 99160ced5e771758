package egress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
)

// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,resourceNames=kubernetes,verbs=get

const (
	// interval is how often unneeded policies are deleted.
	interval = time.Minute
	// minAge is how long a policy is kept after the last pod, because another may be created soon.
	minAge = 5 * time.Minute
	// confirmedFor is how long a policy that was read from the API server counts as existing while the cache has it.
	// This operator deletes it only under a lock, and does not create it again for pods that are already active.
	confirmedFor = time.Second
	// addressesFor is how long the addresses of the API server are used before they are read again. The next Sweep
	// updates policies with old addresses.
	addressesFor = 10 * time.Second
)

// Peers selects how policies allow the API server.
type Peers string

// Policies allow the API server by its addresses or, for networks that do not match nodes by
// their addresses, by its port.
const (
	PeersAddresses Peers = "Addresses"
	PeersPorts     Peers = "Ports"
)

// Policies creates and deletes the NetworkPolicies of runner pods. A nil Policies does nothing.
type Policies struct {
	client   client.Client
	live     client.Reader // the API server itself, not the cache
	servers  Peers
	operator Operator
	now      func() time.Time
	log      logr.Logger

	// held is locked for reading while a pod is created whose policy was just ensured, and for
	// writing while a policy is deleted.
	held  sync.RWMutex
	known atomic.Pointer[knownAddresses]
	// confirmed has the times at which policies were last read from the API server, by their keys.
	confirmed sync.Map
}

// knownAddresses are the addresses of the API server when they were last read.
type knownAddresses struct {
	at        time.Time
	addresses []Address
}

// Options are the settings of Policies.
type Options struct {
	// Servers is how policies allow the API server.
	Servers Peers
	// Operator is the destination in the operator that policies allow.
	Operator Operator
	Now      func() time.Time
	Log      logr.Logger
}

// New returns a Policies; add it to a manager, so that it deletes unneeded policies.
func New(c client.Client, live client.Reader, o Options) *Policies {
	return &Policies{client: c, live: live, servers: o.Servers, operator: o.Operator, now: o.Now, log: o.Log}
}

// Acquire creates the policy of a class in a namespace if it does not exist, and keeps it until
// release is called.
func (p *Policies) Acquire(ctx context.Context, namespace string, c Class) (release func(), err error) {
	if p == nil {
		return func() {}, nil
	}
	p.held.RLock()
	if err := p.ensure(ctx, c, namespace); err != nil {
		p.held.RUnlock()
		return nil, err
	}
	return p.held.RUnlock, nil
}

// Has reports whether the cache has the policy of a class as it should be, or any if it is not known
// where the API server is.
func (p *Policies) Has(ctx context.Context, namespace string, c Class) bool {
	servers, err := p.toServers(ctx)
	if err != nil {
		return p.Exists(ctx, namespace, c.Label())
	}
	return p.isCached(ctx, types.NamespacedName{Namespace: namespace, Name: Name(c.Label())}, Policy(c, namespace, servers, p.operator))
}

// Exists reports whether the cache has a policy for a class label, with any rules.
func (p *Policies) Exists(ctx context.Context, namespace, label string) bool {
	return p.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: Name(label)}, &networkingv1.NetworkPolicy{}) == nil
}

// ensure reads from the API server, because the cache may have a policy that was just deleted,
// unless it did so a moment ago.
func (p *Policies) ensure(ctx context.Context, c Class, namespace string) error {
	key := types.NamespacedName{Namespace: namespace, Name: Name(c.Label())}
	servers, err := p.toServers(ctx)
	if err != nil {
		return err
	}
	want := Policy(c, namespace, servers, p.operator)
	if p.isConfirmed(ctx, key, want) {
		return nil
	}
	if err := p.confirm(ctx, key, want); err != nil {
		return err
	}
	p.confirmed.Store(key, p.now())
	return nil
}

// confirm reads a policy from the API server, and creates or restores it.
func (p *Policies) confirm(ctx context.Context, key types.NamespacedName, want *networkingv1.NetworkPolicy) error {
	var had networkingv1.NetworkPolicy
	found, err := apierr.Found(p.live.Get(ctx, key, &had))
	switch {
	case err != nil:
		return fmt.Errorf("getting NetworkPolicy %s: %w", key.Name, err)
	case found:
		return p.restore(ctx, &had, want)
	}
	if err := p.client.Create(ctx, want); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("creating NetworkPolicy %s: %w", want.Name, err)
	}
	return nil
}

// isConfirmed reports whether a policy was read from the API server a moment ago, and the cache has
// it as it should be.
func (p *Policies) isConfirmed(ctx context.Context, key types.NamespacedName, want *networkingv1.NetworkPolicy) bool {
	at, has := p.confirmed.Load(key)
	if since, is := at.(time.Time); !has || !is || p.now().Sub(since) >= confirmedFor {
		return false
	}
	return p.isCached(ctx, key, want)
}

func (p *Policies) isCached(ctx context.Context, key types.NamespacedName, want *networkingv1.NetworkPolicy) bool {
	var cached networkingv1.NetworkPolicy
	return p.client.Get(ctx, key, &cached) == nil && cached.DeletionTimestamp == nil &&
		cached.Labels[v1alpha1.LabelEgress] == want.Labels[v1alpha1.LabelEgress] && equality.Semantic.DeepEqual(Digest(cached.Spec), Digest(want.Spec))
}

// restore undoes changes of a policy by others.
func (p *Policies) restore(ctx context.Context, had, want *networkingv1.NetworkPolicy) error {
	hasLabels := had.Labels[v1alpha1.LabelEgress] == want.Labels[v1alpha1.LabelEgress]
	if hasLabels && equality.Semantic.DeepEqual(had.Spec, want.Spec) {
		return nil
	}
	was := had.DeepCopy()
	had.Spec = want.Spec
	had.Labels = labels.Merge(had.Labels, want.Labels)
	if err := p.client.Patch(ctx, had, client.MergeFrom(was)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patching NetworkPolicy %s: %w", had.Name, err)
	}
	return nil
}

// toServers returns the rule for the API server. It is an error if the EndpointSlice of the API server cannot
// be read, and never could: no policy is created then. If the EndpointSlice has no addresses, the usual ports are
// open to all addresses except link-local and metadata addresses.
func (p *Policies) toServers(ctx context.Context) (networkingv1.NetworkPolicyEgressRule, error) {
	if p.servers == PeersPorts {
		return toAnyServer(), nil
	}
	last := p.known.Load()
	if last != nil && p.now().Sub(last.at) < addressesFor {
		return toServers(last.addresses), nil
	}
	var slice discoveryv1.EndpointSlice
	_, err := apierr.Found(p.live.Get(ctx, types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}, &slice))
	switch {
	case err == nil:
	case last != nil:
		return toServers(last.addresses), nil
	default:
		return networkingv1.NetworkPolicyEgressRule{}, fmt.Errorf("getting EndpointSlice kubernetes in namespace default, which has the addresses of the API server for the NetworkPolicy of the pod: %w", err)
	}
	found := &knownAddresses{at: p.now(), addresses: addressesOf(slice)}
	switch {
	case len(found.addresses) > 0:
	case last != nil:
		found.addresses = last.addresses // an API server that ends removes its own
	default:
		p.log.Info("EndpointSlice kubernetes in namespace default has no addresses of the API server: policies allow its usual ports of all addresses except link-local and metadata addresses. A network plugin that matches no cluster node by address, such as Cilium, needs networkPolicies.apiServer: Ports")
	}
	p.known.Store(found)
	return toServers(found.addresses), nil
}

// addressesOf returns the sorted addresses of a slice.
func addressesOf(slice discoveryv1.EndpointSlice) []Address {
	var out []Address
	for _, p := range slice.Ports {
		if p.Port == nil {
			continue
		}
		for _, e := range slice.Endpoints {
			for _, ip := range e.Addresses {
				if _, err := netip.ParseAddr(ip); err == nil {
					out = append(out, Address{IP: ip, Port: *p.Port})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b Address) int { return cmp.Or(cmp.Compare(a.IP, b.IP), cmp.Compare(a.Port, b.Port)) })
	return out
}

// Start deletes unneeded policies at an interval until the context ends.
func (p *Policies) Start(ctx context.Context) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := p.Sweep(ctx); err != nil && ctx.Err() == nil {
			p.log.Error(err, "deleting unneeded NetworkPolicies; it is retried")
		}
	}
}

// NeedLeaderElection returns true: only one operator may delete policies.
func (*Policies) NeedLeaderElection() bool { return true }

// Sweep deletes the policies that no unfinished pod needs, and updates the addresses of the
// API server in the others.
func (p *Policies) Sweep(ctx context.Context) error {
	p.forget()
	var policies networkingv1.NetworkPolicyList
	if err := p.client.List(ctx, &policies, client.HasLabels{v1alpha1.LabelEgress}); err != nil {
		return fmt.Errorf("listing NetworkPolicies: %w", err)
	}
	if len(policies.Items) == 0 {
		return nil
	}
	var servers *networkingv1.NetworkPolicyEgressRule // nil: it stays
	rule, err := p.toServers(ctx)
	if err == nil {
		servers = &rule
	}
	failed := []error{err} // neither this nor a namespace that refuses stops the others
	for i := range policies.Items {
		failed = append(failed, p.sweep(ctx, &policies.Items[i], servers))
	}
	return errors.Join(failed...)
}

func (p *Policies) sweep(ctx context.Context, policy *networkingv1.NetworkPolicy, servers *networkingv1.NetworkPolicyEgressRule) error {
	label := policy.Labels[v1alpha1.LabelEgress]
	if policy.Name != Name(label) || policy.DeletionTimestamp != nil {
		return nil // not of the operator, or being deleted
	}
	needed, err := needed(ctx, p.client, policy.Namespace, label)
	if err != nil {
		return err
	}
	switch {
	case !needed && p.now().Sub(policy.CreationTimestamp.Time) >= minAge:
		return p.remove(ctx, policy, label)
	case servers == nil:
		return nil
	}
	return p.updateServers(ctx, policy, *servers)
}

// updateServers sets the rule for the API server in a policy that has another. The cache has only
// digests of a policy, so the policy is read.
func (p *Policies) updateServers(ctx context.Context, cached *networkingv1.NetworkPolicy, servers networkingv1.NetworkPolicyEgressRule) error {
	if !hasOtherServers(cached.Spec, servers) {
		return nil
	}
	var had networkingv1.NetworkPolicy
	found, err := apierr.Found(p.live.Get(ctx, client.ObjectKeyFromObject(cached), &had))
	if err != nil {
		return fmt.Errorf("getting NetworkPolicy %s: %w", cached.Name, err)
	}
	if !found || len(had.Spec.Egress) <= serversRule {
		return nil
	}
	want := had.DeepCopy()
	want.Spec.Egress[serversRule] = servers
	return p.restore(ctx, &had, want)
}

// forget drops confirmations that are too old.
func (p *Policies) forget() {
	p.confirmed.Range(func(key, at any) bool {
		if since, is := at.(time.Time); !is || p.now().Sub(since) >= confirmedFor {
			p.confirmed.Delete(key)
		}
		return true
	})
}

// remove deletes a policy if no pod on the API server needs it. The lock keeps the operator
// from creating one meanwhile.
func (p *Policies) remove(ctx context.Context, policy *networkingv1.NetworkPolicy, label string) error {
	p.held.Lock()
	defer p.held.Unlock()
	if is, err := needed(ctx, p.live, policy.Namespace, label); is || err != nil {
		return err
	}
	p.confirmed.Delete(client.ObjectKeyFromObject(policy))
	return apierr.Delete(ctx, p.client, policy, "NetworkPolicy")
}

// needed reports whether an unfinished pod has a label.
func needed(ctx context.Context, r client.Reader, namespace, label string) (bool, error) {
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelEgress: label}); err != nil {
		return false, fmt.Errorf("listing Pods: %w", err)
	}
	return slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
		return p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
	}), nil
}
