package egress

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// server returns an API server with these objects.
func server(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(networkingv1.AddToScheme(scheme), corev1.AddToScheme(scheme), discoveryv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// failing returns a client whose requests with these verbs fail for objects of a type.
func failing(c client.WithWatch, err error, verb, kind string) client.WithWatch {
	fails := func(is string, o any) error {
		if is == verb && strings.HasSuffix(fmt.Sprintf("%T", o), "."+kind) {
			return err
		}
		return nil
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := fails("get", o); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, o client.ObjectList, opts ...client.ListOption) error {
			if err := fails("list", o); err != nil {
				return err
			}
			return c.List(ctx, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := fails("create", o); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := fails("patch", o); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := fails("delete", o); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
	})
}

// endpoints returns the addresses of the API server, as it publishes them.
func endpoints(ips ...string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"},
		Ports:      []discoveryv1.EndpointPort{{}, {Port: new(int32(6443))}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: ips}},
	}
}

func TestAddressesOfASlice(t *testing.T) {
	slice := endpoints("10.0.0.2", "api.example", "10.0.0.1")
	slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Port: new(int32(443))})
	slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{"fd00::1"}})
	want := []Address{{"10.0.0.1", 443}, {"10.0.0.1", 6443}, {"10.0.0.2", 443}, {"10.0.0.2", 6443}, {"fd00::1", 443}, {"fd00::1", 6443}}
	if diff := cmp.Diff(want, addressesOf(*slice)); diff != "" {
		t.Errorf("addresses -want +got:\n%s", diff)
	}
}

// While the addresses of the API server cannot be read, policies allow the last ones. If there are none, no
// policy is created, and one that exists stays as it is.
func TestWhileTheAddressesCannotBeRead(t *testing.T) {
	now := time.Unix(1e9, 0)
	up := server(t, endpoints("10.0.0.1"))
	down := failing(up, errStubborn, "get", "EndpointSlice")
	p := New(up, down, Options{Servers: PeersAddresses, Now: func() time.Time { return now }})
	if _, err := p.Acquire(t.Context(), "team-a", Class{}); !errors.Is(err, errStubborn) || !strings.Contains(err.Error(), "EndpointSlice kubernetes in namespace default") {
		t.Errorf("Acquire() = %v", err)
	}
	if p.Has(t.Context(), "team-a", Class{}) {
		t.Error("it has a policy that was not created")
	}
	p.live = up
	release, err := p.Acquire(t.Context(), "team-a", Class{})
	if err != nil {
		t.Fatal(err)
	}
	release()
	p.live, now = down, now.Add(addressesFor)
	if rule, err := p.toServers(t.Context()); err != nil || rule.To[0].IPBlock.CIDR != "10.0.0.1/32" {
		t.Errorf("policies allow %+v, %v; want the last address", rule, err)
	}
	afresh := New(up, down, Options{Servers: PeersAddresses, Now: func() time.Time { return now.Add(minAge) }})
	if !afresh.Has(t.Context(), "team-a", Class{}) {
		t.Error("a policy that exists is to be created again")
	}
	if err := afresh.Sweep(t.Context()); !errors.Is(err, errStubborn) {
		t.Errorf("Sweep() = %v", err)
	}
}

// A cluster that lists no addresses of its API server lets pods reach its usual ports, but none of a cluster
// node or cloud, and the log says so once. An API server that ends takes its address from the list.
func TestWhileNoAddressIsListed(t *testing.T) {
	now, logged := time.Unix(1e9, 0), 0
	log := funcr.New(func(string, string) { logged++ }, funcr.Options{})
	p := New(nil, server(t), Options{Servers: PeersAddresses, Now: func() time.Time { return now }, Log: log})
	allows := func(want networkingv1.NetworkPolicyEgressRule) {
		t.Helper()
		got, err := p.toServers(t.Context())
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v, -want +got:\n%s", err, diff)
		}
		now = now.Add(addressesFor)
	}
	anywhere := networkingv1.NetworkPolicyEgressRule{To: everywhere(), Ports: tcp(443, 6443)}
	allows(anywhere)
	allows(anywhere)
	p.live = server(t, endpoints())
	allows(anywhere)
	p.live = server(t, endpoints("10.0.0.1"))
	allows(toServers([]Address{{"10.0.0.1", 6443}}))
	p.live = server(t, endpoints())
	allows(toServers([]Address{{"10.0.0.1", 6443}}))
	if logged != 1 {
		t.Errorf("the log says so %d times", logged)
	}
}

// Policies are swept each minute. A sweep that fails is logged, and the next one comes.
func TestUnneededPoliciesAreDeletedAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged []string
		log := funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
		broken := failing(server(t), errStubborn, "list", "NetworkPolicyList")
		p := New(broken, broken, Options{Servers: PeersPorts, Now: time.Now, Log: log})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Start(ctx) }()
		time.Sleep(2*interval + time.Second)
		synctest.Wait()
		if len(logged) != 2 || !strings.Contains(logged[0], "deleting unneeded NetworkPolicies; it is retried") || !strings.Contains(logged[0], errStubborn.Error()) {
			t.Errorf("the log says %q", logged)
		}
		stop()
		if err := <-ended; err != nil || len(logged) != 2 {
			t.Errorf("it ends with %v, and the log says %q", err, logged)
		}
	})
}

func TestOnlyTheLeaderDeletesPolicies(t *testing.T) {
	if !New(nil, nil, Options{}).NeedLeaderElection() {
		t.Error("each operator deletes policies")
	}
}

// agedPolicy returns the policy of a class in team-a that was created an hour before the sweep.
func agedPolicy(mods ...func(*networkingv1.NetworkPolicy)) *networkingv1.NetworkPolicy {
	p := Policy(Class{}, "team-a", toServers([]Address{{"10.0.0.9", 6443}}), Operator{})
	p.CreationTimestamp = metav1.NewTime(sweepAt.Add(-time.Hour))
	for _, mod := range mods {
		mod(p)
	}
	return p
}

var sweepAt = time.Unix(1e9, 0)

// podOf returns a pod that needs the policy.
func podOf(phase corev1.PodPhase, mods ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "x-1", Labels: map[string]string{v1alpha1.LabelEgress: Class{}.Label()}},
		Status:     corev1.PodStatus{Phase: phase},
	}
	for _, mod := range mods {
		mod(p)
	}
	return p
}

// A policy is deleted unless a pod needs it, or may soon. A policy that stays gets the addresses that
// the API server has now.
func TestWhichPoliciesASweepDeletes(t *testing.T) {
	made := func(before time.Duration) func(*networkingv1.NetworkPolicy) {
		return func(p *networkingv1.NetworkPolicy) { p.CreationTimestamp = metav1.NewTime(sweepAt.Add(-before)) }
	}
	nothing := func(*networkingv1.NetworkPolicy) {}
	const gone, old, updated = "", "10.0.0.9/32", "10.0.0.1/32"
	for name, tc := range map[string]struct {
		policy       func(*networkingv1.NetworkPolicy)
		cached, live *corev1.Pod // nil: none
		want         string      // the address of the API server in the policy
	}{
		"no pod needs it":                     {nothing, nil, nil, gone},
		"a pod needs it":                      {nothing, podOf(corev1.PodRunning), podOf(corev1.PodRunning), updated},
		"a pod that has not started needs it": {nothing, podOf(""), podOf(""), updated},
		"a pod that the cache does not show":  {nothing, nil, podOf(corev1.PodPending), old},
		"a pod that succeeded":                {nothing, podOf(corev1.PodSucceeded), podOf(corev1.PodSucceeded), gone},
		"a pod that failed":                   {nothing, podOf(corev1.PodFailed), podOf(corev1.PodFailed), gone},
		"a pod of another namespace":          {nothing, podOf("", func(p *corev1.Pod) { p.Namespace = "team-b" }), podOf("", func(p *corev1.Pod) { p.Namespace = "team-b" }), gone},
		"a pod that needs another":            {nothing, podOf("", func(p *corev1.Pod) { p.Labels[v1alpha1.LabelEgress] = "y" }), nil, gone},
		"it was just created":                 {made(minAge - time.Second), nil, nil, updated},
		"it was created some time ago":        {made(minAge), nil, nil, gone},
		"it is being deleted": {func(p *networkingv1.NetworkPolicy) {
			p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: sweepAt}, []string{"example.com/f"}
		}, nil, nil, old},
		"a user gave it fewer rules": {func(p *networkingv1.NetworkPolicy) { p.Spec.Egress = p.Spec.Egress[:1] }, podOf(""), podOf(""), "1 rules"},
		"it has the addresses of the API server": {func(p *networkingv1.NetworkPolicy) {
			p.Spec.Egress[serversRule] = toServers([]Address{{"10.0.0.1", 6443}})
		}, podOf(""), podOf(""), updated},
		"it has no address, and opens the port": {func(p *networkingv1.NetworkPolicy) { p.Spec.Egress[serversRule] = toServers(nil) }, podOf(""), podOf(""), updated},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{agedPolicy(tc.policy), endpoints("10.0.0.1")}
			cached, all := slices.Clone(objects), objects
			if tc.cached != nil {
				cached = append(cached, tc.cached)
			}
			if tc.live != nil {
				all = append(all, tc.live)
			}
			live := server(t, all...)
			lists := server(t, cached...)
			c := interceptor.NewClient(live, interceptor.Funcs{List: func(ctx context.Context, _ client.WithWatch, o client.ObjectList, opts ...client.ListOption) error {
				return lists.List(ctx, o, opts...)
			}})
			if err := New(c, live, Options{Servers: PeersAddresses, Now: func() time.Time { return sweepAt }}).Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			var is networkingv1.NetworkPolicy
			got := gone
			switch err := live.Get(t.Context(), client.ObjectKeyFromObject(agedPolicy()), &is); {
			case err == nil && len(is.Spec.Egress) <= serversRule:
				got = fmt.Sprintf("%d rules", len(is.Spec.Egress))
			case err == nil:
				got = is.Spec.Egress[serversRule].To[0].IPBlock.CIDR
			}
			if got != tc.want {
				t.Errorf("the policy allows %q, want %q", got, tc.want)
			}
		})
	}
}

// A request that fails is an error with the object in it. An object that is gone, or that another
// operator created, is none.
func TestFailuresOfPolicies(t *testing.T) {
	notFound := apierrors.NewNotFound(networkingv1.Resource("networkpolicies"), "p")
	exists := apierrors.NewAlreadyExists(networkingv1.Resource("networkpolicies"), "p")
	sweep := func(p *Policies) error { return p.Sweep(t.Context()) }
	acquire := func(p *Policies) error {
		release, err := p.Acquire(t.Context(), "team-a", Class{})
		if err == nil {
			release()
		}
		return err
	}
	changed := agedPolicy(func(p *networkingv1.NetworkPolicy) { p.Spec.Egress = nil })
	pod := podOf(corev1.PodRunning)
	for name, tc := range map[string]struct {
		do         func(*Policies) error
		objects    []client.Object
		err        error
		verb, kind string
		want       string // empty: no error
	}{
		"a sweep lists no policies":            {sweep, nil, errStubborn, "list", "NetworkPolicyList", "listing NetworkPolicies: no"},
		"a sweep lists no pods":                {sweep, []client.Object{agedPolicy()}, errStubborn, "list", "PodList", "listing Pods: no"},
		"a policy is not deleted":              {sweep, []client.Object{agedPolicy()}, errStubborn, "delete", "NetworkPolicy", "deleting NetworkPolicy " + agedPolicy().Name + ": no"},
		"a policy was deleted already":         {sweep, []client.Object{agedPolicy()}, notFound, "delete", "NetworkPolicy", ""},
		"a needed policy is not read":          {sweep, []client.Object{agedPolicy(), pod}, errStubborn, "get", "NetworkPolicy", "getting NetworkPolicy " + agedPolicy().Name + ": no"},
		"a needed policy is gone":              {sweep, []client.Object{agedPolicy(), pod}, notFound, "get", "NetworkPolicy", ""},
		"a needed policy is not patched":       {sweep, []client.Object{agedPolicy(), pod}, errStubborn, "patch", "NetworkPolicy", "patching NetworkPolicy " + agedPolicy().Name + ": no"},
		"a needed policy is gone by then":      {sweep, []client.Object{agedPolicy(), pod}, notFound, "patch", "NetworkPolicy", ""},
		"a policy is not read":                 {acquire, nil, errStubborn, "get", "NetworkPolicy", "getting NetworkPolicy " + agedPolicy().Name + ": no"},
		"a policy is not created":              {acquire, nil, errStubborn, "create", "NetworkPolicy", "creating NetworkPolicy " + agedPolicy().Name + ": no"},
		"a policy was created meanwhile":       {acquire, nil, exists, "create", "NetworkPolicy", ""},
		"a changed policy is not restored":     {acquire, []client.Object{changed}, errStubborn, "patch", "NetworkPolicy", "patching NetworkPolicy " + agedPolicy().Name + ": no"},
		"a policy as it should be is no write": {acquire, []client.Object{Policy(Class{}, "team-a", toAnyServer(), Operator{})}, errStubborn, "patch", "NetworkPolicy", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			for _, o := range tc.objects {
				objects = append(objects, o.DeepCopyObject().(client.Object))
			}
			c := failing(server(t, objects...), tc.err, tc.verb, tc.kind)
			err := tc.do(New(c, c, Options{Servers: PeersPorts, Now: func() time.Time { return sweepAt }}))
			if tc.want == "" && err != nil || tc.want != "" && (!errors.Is(err, tc.err) || err.Error() != tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

// A policy without its label, or with another's, selects no pod of its class.
func TestHas(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*networkingv1.NetworkPolicy)
		want   bool
	}{
		"it is as it should be":  {func(*networkingv1.NetworkPolicy) {}, true},
		"a label of a user":      {func(p *networkingv1.NetworkPolicy) { p.Labels["team"] = "a" }, true},
		"another label":          {func(p *networkingv1.NetworkPolicy) { p.Labels[v1alpha1.LabelEgress] = "other" }, false},
		"other rules":            {func(p *networkingv1.NetworkPolicy) { p.Spec.Egress = p.Spec.Egress[1:] }, false},
		"it is in another place": {func(p *networkingv1.NetworkPolicy) { p.Namespace = "team-b" }, false},
		"it is being deleted": {func(p *networkingv1.NetworkPolicy) {
			p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: sweepAt}, []string{"example.com/f"}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			policy := Policy(Class{}, "team-a", toAnyServer(), Operator{})
			tc.change(policy)
			c := server(t, policy)
			p := New(c, c, Options{Servers: PeersPorts, Now: func() time.Time { return sweepAt }})
			if got := p.Has(t.Context(), "team-a", Class{}); got != tc.want {
				t.Errorf("Has() = %t", got)
			}
			if policy.DeletionTimestamp != nil || policy.Namespace != "team-a" {
				return
			}
			release, err := p.Acquire(t.Context(), "team-a", Class{})
			if err != nil {
				t.Fatal(err)
			}
			release()
			if !p.Has(t.Context(), "team-a", Class{}) {
				t.Error("it is not restored")
			}
		})
	}
}

// An operator without NetworkPolicies has none to hold.
func TestNoPolicies(t *testing.T) {
	var p *Policies
	release, err := p.Acquire(t.Context(), "team-a", Class{})
	if err != nil {
		t.Fatal(err)
	}
	release()
}
