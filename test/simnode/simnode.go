package simnode

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
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
