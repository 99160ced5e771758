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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,resourceNames=kubernetes,verbs=get

const (
	// interval is how often policies are swept.
	interval = time.Minute
	// spared is how long a policy stays at least: a pod of it may be on its way.
	spared = 5 * time.Minute
)

// Peers say how the API server is let through.
type Peers string

// How the API server is let through: at its addresses, or at its port, for
// networks that do not match nodes by their addresses.
const (
	PeersAddresses Peers = "Addresses"
	PeersPorts     Peers = "Ports"
)

// A Fence makes policies and takes them away. A nil Fence does neither.
type Fence struct {
	client  client.Client
	live    client.Reader // the API server itself, not the cache
	servers Peers
	now     func() time.Time
	log     logr.Logger

	// making is held for reading while a pod is made of a policy that was just
	// seen, and for writing while one is taken away.
	making sync.RWMutex
	known  atomic.Pointer[[]Address] // where the API server was last seen
}

// Options are what a Fence needs to know.
type Options struct {
	// Servers is how the API server is let through.
	Servers Peers
	Now     func() time.Time
	Log     logr.Logger
}

// New is a Fence; add it to a manager, to have it sweep.
func New(c client.Client, live client.Reader, o Options) *Fence {
	return &Fence{client: c, live: live, servers: o.Servers, now: o.Now, log: o.Log}
}

// Hold makes sure that a class has its policy in a namespace, and that it stays
// until release is called.
func (f *Fence) Hold(ctx context.Context, namespace string, c Class) (release func(), err error) {
	if f == nil {
		return func() {}, nil
	}
	f.making.RLock()
	if err := f.ensure(ctx, c, namespace); err != nil {
		f.making.RUnlock()
		return nil, err
	}
	return f.making.RUnlock, nil
}

// ensure reads past the cache, which may show a policy that has just gone.
func (f *Fence) ensure(ctx context.Context, c Class, namespace string) error {
	key := types.NamespacedName{Namespace: namespace, Name: Name(c.Label())}
	var had networkingv1.NetworkPolicy
	err := f.live.Get(ctx, key, &had)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("getting NetworkPolicy %s: %w", key.Name, err)
	}
	want := Policy(c, namespace, f.addresses(ctx))
	if err == nil {
		return f.mend(ctx, &had, want)
	}
	if err := f.client.Create(ctx, want); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating NetworkPolicy %s: %w", want.Name, err)
	}
	return nil
}

// mend undoes what somebody else made of a policy.
func (f *Fence) mend(ctx context.Context, had, want *networkingv1.NetworkPolicy) error {
	if equality.Semantic.DeepEqual(had.Spec, want.Spec) {
		return nil
	}
	was := had.DeepCopy()
	had.Spec = want.Spec
	if err := f.client.Patch(ctx, had, client.MergeFrom(was)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patching NetworkPolicy %s: %w", had.Name, err)
	}
	return nil
}

// addresses are those of the API server; none: nobody says, or they are of no
// use here.
func (f *Fence) addresses(ctx context.Context) []Address {
	if f.servers == PeersPorts {
		return nil
	}
	var slice discoveryv1.EndpointSlice
	if err := f.live.Get(ctx, types.NamespacedName{Namespace: "default", Name: "kubernetes"}, &slice); err != nil {
		if last := f.known.Load(); last != nil {
			return *last
		}
		f.log.V(1).Info("the API server's addresses are unknown; it is let through by its port", "error", err.Error())
		return nil
	}
	out := addressesOf(slice)
	f.known.Store(&out)
	return out
}

// addressesOf are those of a slice, in order.
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

// Start sweeps until the context ends.
func (f *Fence) Start(ctx context.Context) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := f.Sweep(ctx); err != nil && ctx.Err() == nil {
			f.log.Error(err, "sweeping NetworkPolicies; it is tried again")
		}
	}
}

// NeedLeaderElection is true: one operator takes policies away.
func (*Fence) NeedLeaderElection() bool { return true }

// Sweep takes the policies away that no living pod needs, and keeps the others up
// with where the API server is.
func (f *Fence) Sweep(ctx context.Context) error {
	var policies networkingv1.NetworkPolicyList
	if err := f.client.List(ctx, &policies, client.HasLabels{v1alpha1.LabelEgress}); err != nil {
		return fmt.Errorf("listing NetworkPolicies: %w", err)
	}
	if len(policies.Items) == 0 {
		return nil
	}
	servers := toServers(f.addresses(ctx))
	var failed []error // a namespace that refuses does not stop the others
	for i := range policies.Items {
		failed = append(failed, f.sweep(ctx, &policies.Items[i], servers))
	}
	return errors.Join(failed...)
}

func (f *Fence) sweep(ctx context.Context, p *networkingv1.NetworkPolicy, servers networkingv1.NetworkPolicyEgressRule) error {
	label := p.Labels[v1alpha1.LabelEgress]
	if p.Name != Name(label) || p.DeletionTimestamp != nil {
		return nil // not ours, or going already
	}
	needed, err := needed(ctx, f.client, p.Namespace, label)
	if err != nil {
		return err
	}
	if needed || f.now().Sub(p.CreationTimestamp.Time) < spared {
		want := p.DeepCopy()
		if len(want.Spec.Egress) > serversRule {
			want.Spec.Egress[serversRule] = servers
		}
		return f.mend(ctx, p.DeepCopy(), want)
	}
	return f.remove(ctx, p, label)
}

// remove takes a policy away once the API server itself says that nobody needs
// it. No pod is made of it meanwhile.
func (f *Fence) remove(ctx context.Context, p *networkingv1.NetworkPolicy, label string) error {
	f.making.Lock()
	defer f.making.Unlock()
	if is, err := needed(ctx, f.live, p.Namespace, label); is || err != nil {
		return err
	}
	uid := p.UID
	if err := f.client.Delete(ctx, p, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting NetworkPolicy %s: %w", p.Name, err)
	}
	return nil
}

// needed says whether a living pod carries a label.
func needed(ctx context.Context, r client.Reader, namespace, label string) (bool, error) {
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelEgress: label}); err != nil {
		return false, fmt.Errorf("listing Pods: %w", err)
	}
	return slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
		return p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
	}), nil
}
