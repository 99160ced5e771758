// Package simnode simulates a node for tests at scale: it acts as the kubelet and as
// the runners of thousands of pods, and starts no container.
//
// Only the containers are simulated. The API server, its admission policies, the
// scheduler and the operator are the real ones:
//
//   - The kubelet's requests are made as system:node:<name>, in the group
//     system:nodes, so that the Node authorizer and NodeRestriction apply to them.
//   - The reports of a runner are written by package internal/shared/report, as the pod's
//     ServiceAccount with the pod's name and UID, which is what a token bound to the
//     pod would say. The policy that guards the status of Runs applies to them.
//
// Both need a client that may impersonate, as an administrator may.
//
// A simulated node is tainted, so that only pods that tolerate it are scheduled there:
//
//	pod.Spec.NodeSelector = simnode.Selector("sim")
//	pod.Spec.Tolerations = simnode.Tolerations()
//
// A pod becomes Running, works for as long as Options.Work says, and ends as
// Succeeded. A runner reports its result in between, and nothing while it works. A kubelet
// patches the status of a pod more often than that.
package simnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
)

// Options configure a simulated node.
type Options struct {
	Name string
	// Work is how long a pod works; nil: not at all.
	Work func(*corev1.Pod) time.Duration
	// Effects returns what the runner of a pod changes outside, before it works; nil: nothing. The returned function
	// makes the change. It is called after the API server accepted the report that effects begin.
	Effects func(*corev1.Pod) func()
	// Failed is called with the errors of kubelet and runners, from several goroutines at once; nil: it is not called.
	Failed func(error)
}

// A Node is a simulated node.
type Node struct {
	options Options
	admin   kubernetes.Interface
	kubelet kubernetes.Interface
	host    string            // URL of the API server
	api     http.RoundTripper // to it, as the administrator

	addresses atomic.Uint32

	mu   sync.Mutex
	pods map[types.UID]*pod
}

// New returns a node at an API server. cfg must be allowed to impersonate.
func New(cfg *rest.Config, o Options) (*Node, error) {
	if o.Work == nil {
		o.Work = func(*corev1.Pod) time.Duration { return 0 }
	}
	if o.Effects == nil {
		o.Effects = func(*corev1.Pod) func() { return nil }
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	admin := rest.CopyConfig(cfg)
	admin.QPS, admin.Burst = -1, 0
	n := &Node{options: o, pods: map[types.UID]*pod{}}
	var err error
	if n.api, err = rest.TransportFor(admin); err != nil {
		return nil, fmt.Errorf("making a transport: %w", err)
	}
	server, _, err := rest.DefaultServerUrlFor(admin)
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	n.host = server.Scheme + "://" + server.Host
	admin.ContentType = "application/vnd.kubernetes.protobuf" // cheaper than JSON
	kubelet := rest.CopyConfig(admin)
	kubelet.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + o.Name, Groups: []string{"system:nodes", "system:authenticated"}}
	if n.admin, err = kubernetes.NewForConfig(admin); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	if n.kubelet, err = kubernetes.NewForConfig(kubelet); err != nil {
		return nil, fmt.Errorf("making a client of the kubelet: %w", err)
	}
	return n, nil
}

var errNotSynced = errors.New("listing the pods of the simulated node: interrupted")

// Start registers the node and returns when it takes pods. It does so until ctx
// ends.
func (n *Node) Start(ctx context.Context) error {
	if err := n.register(ctx); err != nil {
		return err
	}
	go n.keepAlive(ctx)
	mine := informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", n.options.Name).String()
	})
	factory := informers.NewSharedInformerFactoryWithOptions(n.kubelet, 0, mine, informers.WithTransform(stripManagedFields))
	informer := factory.Core().V1().Pods().Informer()
	registered, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { n.observe(ctx, o) },
		UpdateFunc: func(_, o any) { n.observe(ctx, o) },
		DeleteFunc: n.forget,
	})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), registered.HasSynced) {
		return errNotSynced
	}
	return nil
}

func stripManagedFields(o any) (any, error) {
	if p, is := o.(*corev1.Pod); is {
		p.ManagedFields = nil
	}
	return o, nil
}

// observe starts a pod that is new, and stops one that is being deleted.
func (n *Node) observe(ctx context.Context, o any) {
	seen, is := o.(*corev1.Pod)
	if !is {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.pods[seen.UID]
	if p == nil {
		if hasEnded(seen) && seen.DeletionTimestamp == nil {
			return
		}
		p = newPod(n, seen)
		n.pods[seen.UID] = p
		go p.live(ctx)
	}
	if seen.DeletionTimestamp != nil {
		p.terminate()
	}
}

// forget removes a deleted pod.
func (n *Node) forget(o any) {
	if last, is := o.(cache.DeletedFinalStateUnknown); is {
		o = last.Obj
	}
	gone, is := o.(*corev1.Pod)
	if !is {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.pods[gone.UID]; p != nil {
		p.gone.Store(true)
		p.terminate()
		delete(n.pods, gone.UID)
	}
}

// address returns a new address of 198.18.0.0/15, the block for benchmarks of networks.
func (n *Node) address() string {
	i := n.addresses.Add(1)
	return fmt.Sprintf("198.%d.%d.%d", 18+i>>16&1, i>>8&0xff, i&0xff)
}

// label marks simulated nodes; its value is the node's name. The same key is the
// taint that keeps other pods away.
const label = "simnode.test/simulated"

// Selector chooses the simulated node of a name.
func Selector(name string) map[string]string { return map[string]string{label: name} }

// Tolerations let a pod onto simulated nodes.
func Tolerations() []corev1.Toleration {
	return []corev1.Toleration{{Key: label, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
}

// capacity returns the capacity of the node, which no test exceeds.
func capacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourcePods:             resource.MustParse("20000"),
		corev1.ResourceCPU:              resource.MustParse("10000"),
		corev1.ResourceMemory:           resource.MustParse("100Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Ti"),
	}
}

// register creates the Node, or uses the Node of an earlier test.
func (n *Node) register(ctx context.Context) error {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.options.Name, Labels: map[string]string{label: n.options.Name, corev1.LabelHostname: n.options.Name}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: label, Value: n.options.Name, Effect: corev1.TaintEffectNoSchedule}}},
	}
	if _, err := n.admin.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating Node %s: %w", n.options.Name, err)
	}
	since := metav1.NewTime(clock.Now())
	patch, err := json.Marshal(map[string]any{"status": corev1.NodeStatus{
		Capacity: capacity(), Allocatable: capacity(),
		Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Simulated",
			LastHeartbeatTime: since, LastTransitionTime: since,
		}},
	}})
	if err != nil {
		return fmt.Errorf("encoding the status of Node %s: %w", n.options.Name, err)
	}
	if _, err := n.kubelet.CoreV1().Nodes().PatchStatus(ctx, n.options.Name, patch); err != nil {
		return fmt.Errorf("patching the status of Node %s: %w", n.options.Name, err)
	}
	return n.renew(ctx)
}

const (
	// renewal is how often the lease is renewed, as kubelets do.
	renewal = 10 * time.Second
	// leaseSeconds is how long the lease is valid, as with kubelets.
	leaseSeconds int32 = 40
)

// renew renews the lease, by which the control plane knows that the node is alive.
func (n *Node) renew(ctx context.Context) error {
	leases, at, seconds := n.kubelet.CoordinationV1().Leases(corev1.NamespaceNodeLease), metav1.NewMicroTime(clock.Now()), leaseSeconds
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: n.options.Name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &n.options.Name, LeaseDurationSeconds: &seconds, RenewTime: &at},
	}
	patch, err := json.Marshal(map[string]any{"spec": lease.Spec})
	if err != nil {
		return fmt.Errorf("encoding the Lease of Node %s: %w", n.options.Name, err)
	}
	_, err = leases.Patch(ctx, lease.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("renewing the Lease of Node %s: %w", n.options.Name, err)
	}
	return nil
}

// keepAlive renews the lease until ctx ends.
func (n *Node) keepAlive(ctx context.Context) {
	tick := time.NewTicker(renewal)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := n.renew(ctx); err != nil && ctx.Err() == nil {
				n.options.Failed(err)
			}
		}
	}
}

// Remove deletes the Node and its lease. Pods that are still there are left to the
// control plane, which deletes pods of missing nodes after a while.
func (n *Node) Remove(ctx context.Context) error {
	return errors.Join(
		ignoreNotFound(n.admin.CoreV1().Nodes().Delete(ctx, n.options.Name, metav1.DeleteOptions{})),
		ignoreNotFound(n.admin.CoordinationV1().Leases(corev1.NamespaceNodeLease).Delete(ctx, n.options.Name, metav1.DeleteOptions{})),
	)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
