// Package enforce makes NetworkPolicies take effect on the nodes of the test cluster, in the
// two ways in which network plugins differ most. A namespace chooses by [Label]; without it,
// the cluster's default applies, which is that nothing is enforced.
//
// Compile turns policies into rules of nftables and has no I/O, Serve keeps the rules of all
// nodes as the API server has the policies. It knows what Deckhand writes: addresses of IPv4,
// ports by number, selectors.
package enforce

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/deckhand-dev/deckhand/test/cluster/internal/netns"
)

// Options say where policies are enforced.
type Options struct {
	Kubeconfig string
	Default    Mode
	Nodes      []string // also the names of their network namespaces
	Log        io.Writer
}

// again is the delay before a failed pass is repeated.
const again = time.Second

// An enforcer keeps the rules of all nodes.
type enforcer struct {
	Options
	factory informers.SharedInformerFactory
	// seen is when a pod was first known to run.
	seen map[types.UID]time.Time
	// applied are the rules of each node.
	applied map[string]string
	apply   func(ctx context.Context, node, rules string) error
	now     func() time.Time
}

// Serve enforces policies until ctx ends.
func Serve(ctx context.Context, o Options) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making client: %w", err)
	}
	e := &enforcer{
		Options: o, factory: informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(strip)),
		seen: map[types.UID]time.Time{}, applied: map[string]string{}, apply: apply,
		now: time.Now, //nolint:forbidigo // the program that runs it has no clock to hand on
	}
	return e.work(ctx)
}

// work calls passOrLog whenever something has changed, and when a pod is no longer open. Pods and policies are only
// watched once a namespace has a mode.
func (e *enforcer) work(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	tell := func() {
		select {
		case changed <- struct{}{}:
		default: // a pass is due already
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { tell() }, UpdateFunc: func(any, any) { tell() }, DeleteFunc: func(any) { tell() },
	}
	if err := e.watch(ctx, handler, e.factory.Core().V1().Namespaces().Informer()); err != nil {
		return err
	}
	watchAll := sync.OnceValue(func() error {
		pods, policies := e.factory.Core().V1().Pods().Informer(), e.factory.Networking().V1().NetworkPolicies().Informer()
		return e.watch(ctx, handler, pods, policies)
	})
	for tell(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		if err := e.ifUsed(watchAll); err != nil {
			return err
		}
		if next := e.passOrLog(ctx); next > 0 {
			time.AfterFunc(next, tell)
		}
	}
}

// ifUsed calls do if a namespace has a mode.
func (e *enforcer) ifUsed(do func() error) error {
	if !e.isUsed() {
		return nil
	}
	return do()
}

// passOrLog calls pass and logs its error. It returns the delay until the next call.
func (e *enforcer) passOrLog(ctx context.Context) time.Duration {
	next, err := e.pass(ctx)
	if err != nil {
		fmt.Fprintln(e.Log, err)
		return again
	}
	return next
}

func (e *enforcer) watch(ctx context.Context, handler cache.ResourceEventHandler, all ...cache.SharedIndexInformer) error {
	for _, i := range all {
		if _, err := i.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}
	e.factory.Start(ctx.Done())
	e.factory.WaitForCacheSync(ctx.Done())
	return nil
}

// isUsed reports whether policies are enforced in any namespace.
func (e *enforcer) isUsed() bool {
	all, err := e.factory.Core().V1().Namespaces().Lister().List(labels.Everything())
	return err == nil && slices.ContainsFunc(all, func(n *corev1.Namespace) bool { return modeOf(n, e.Default) != None })
}

// pass applies the rules that have changed. It returns when the next pod is no longer open;
// 0: no pod is open.
func (e *enforcer) pass(ctx context.Context) (next time.Duration, err error) {
	state, err := e.state()
	if err != nil {
		return 0, err
	}
	state.Open = func(p *corev1.Pod) bool {
		left := e.left(p)
		if left > 0 && (next == 0 || left < next) {
			next = left
		}
		return left > 0
	}
	maps.DeleteFunc(e.seen, func(uid types.UID, _ time.Time) bool {
		return !slices.ContainsFunc(state.Pods, func(p *corev1.Pod) bool { return p.UID == uid })
	})
	var errs []error
	for _, n := range e.Nodes {
		rules := state.Compile(n)
		if e.applied[n] == rules {
			continue
		}
		if err := e.apply(ctx, n, rules); err != nil {
			errs = append(errs, err)
			continue
		}
		e.applied[n] = rules
	}
	return next, errors.Join(errs...)
}

// state returns the objects that the informers have.
func (e *enforcer) state() (s State, err error) {
	s.Default = e.Default
	if s.Namespaces, err = e.factory.Core().V1().Namespaces().Lister().List(labels.Everything()); err != nil || !e.isUsed() {
		return s, err
	}
	if s.Pods, err = e.factory.Core().V1().Pods().Lister().List(labels.Everything()); err != nil {
		return s, err
	}
	s.Policies, err = e.factory.Networking().V1().NetworkPolicies().Lister().List(labels.Everything())
	slices.SortFunc(s.Pods, func(a, b *corev1.Pod) int { return strings.Compare(string(a.UID), string(b.UID)) })
	return s, err
}

// left returns how long a pod is still open. Its time begins when all its containers have started, so that the
// containers of a pod with init containers are started while it is open, too.
func (e *enforcer) left(p *corev1.Pod) time.Duration {
	if p.Status.Phase != corev1.PodRunning {
		return openFor
	}
	first, known := e.seen[p.UID]
	if !known {
		first = e.now()
		e.seen[p.UID] = first
	}
	return openFor - e.now().Sub(first)
}

// apply replaces the rules of a node.
func apply(ctx context.Context, node, rules string) error {
	cmd := exec.CommandContext(ctx, "nsenter", "--net="+netns.Namespace(node).Path(), "--", "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("applying the rules of %s: %w: %s\n%s", node, err, out, rules)
	}
	return nil
}

// Applied returns an error until rules were applied to a node.
func Applied(ctx context.Context, node string) error {
	cmd := exec.CommandContext(ctx, "nsenter", "--net="+netns.Namespace(node).Path(), "--", "nft", "list", "table", "ip", table)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("listing the rules of %s: %w: %s", node, err, out)
	}
	return nil
}

// strip removes the fields of a pod on which no rule depends, to save memory: there may be thousands of pods.
func strip(o any) (any, error) {
	pod, is := o.(*corev1.Pod)
	if !is {
		return o, nil
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Labels: pod.Labels, ResourceVersion: pod.ResourceVersion},
		Spec:       corev1.PodSpec{NodeName: pod.Spec.NodeName, HostNetwork: pod.Spec.HostNetwork},
		Status:     corev1.PodStatus{PodIP: pod.Status.PodIP, Phase: pod.Status.Phase},
	}, nil
}
