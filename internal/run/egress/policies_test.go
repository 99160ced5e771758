package egress

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

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

// A namespace that refuses to let its policy go does not keep those of others.
func TestSweepGoesOnAfterARefusal(t *testing.T) {
	stub := &policies{stubborn: "a", in: []string{"a", "b"}}
	f := New(stub, stub, Options{Servers: PeersPorts, Now: func() time.Time { return time.Unix(0, 0).Add(time.Hour) }})
	err := f.Sweep(t.Context())
	if !errors.Is(err, errStubborn) {
		t.Errorf("Sweep() = %v", err)
	}
	if diff := cmp.Diff([]string{"b"}, stub.gone); diff != "" {
		t.Errorf("policies that went (-want +got):\n%s", diff)
	}
}

// A user may give a policy of his own the operator's label: it is neither deleted nor changed.
func TestSweepLeavesPoliciesOfOthers(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(networkingv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	own := Policy(Class{}, "team-a", toAnyServer(), Operator{})
	label := own.Labels[v1alpha1.LabelEgress]
	foreign := func(namespace, name string) *networkingv1.NetworkPolicy {
		p := own.DeepCopy()
		p.Namespace, p.Name = namespace, name
		p.Spec.Egress = append(p.Spec.Egress, networkingv1.NetworkPolicyEgressRule{})
		return p
	}
	needing := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "x-1", Labels: map[string]string{v1alpha1.LabelEgress: label}}}
	all := []client.Object{own, foreign("team-a", "mine"), foreign("team-a", own.Name+"-2"), foreign("team-b", "mine"), needing}
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).Build()
	var before networkingv1.NetworkPolicyList
	if err := server.List(t.Context(), &before); err != nil {
		t.Fatal(err)
	}
	p := New(server, server, Options{Servers: PeersPorts, Now: func() time.Time { return time.Unix(1e9, 0) }})
	if err := p.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	var after networkingv1.NetworkPolicyList
	if err := server.List(t.Context(), &after); err != nil {
		t.Fatal(err)
	}
	want := slices.DeleteFunc(before.Items, func(p networkingv1.NetworkPolicy) bool { return p.Name == own.Name })
	if diff := cmp.Diff(want, after.Items); diff != "" || len(want) != 3 {
		t.Errorf("policies -want +got:\n%s", diff)
	}
}

// A burst of Runs reads the addresses of the API server once; a later pod gets new ones.
func TestAddressesAreReadAgainAfterAWhile(t *testing.T) {
	now, stub := time.Unix(0, 0), &policies{}
	f := New(stub, stub, Options{Servers: PeersAddresses, Now: func() time.Time { return now }})
	for _, step := range []struct {
		after time.Duration
		ip    string // of the API server by then
		reads int
		want  string
	}{
		{0, "10.0.0.1", 1, "10.0.0.1/32"},
		{addressesFor - time.Second, "10.0.0.2", 1, "10.0.0.1/32"},
		{time.Second, "10.0.0.2", 2, "10.0.0.2/32"},
	} {
		now, stub.server = now.Add(step.after), step.ip
		release, err := f.Acquire(t.Context(), "team-a", Class{})
		if err != nil {
			t.Fatal(err)
		}
		release()
		if got := stub.created.Spec.Egress[serversRule].To[0].IPBlock.CIDR; got != step.want || stub.reads != step.reads {
			t.Errorf("after %s: policy allows %s after %d reads, want %s after %d", step.after, got, stub.reads, step.want, step.reads)
		}
	}
}

// A burst of Runs reads its policy once from the API server, as long as the cache has it as it
// should be.
func TestAPolicyIsReadAgainAfterAWhile(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(networkingv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	now, reads := time.Unix(1e9, 0), 0
	server := fake.NewClientBuilder().WithScheme(scheme).Build()
	cached := map[bool]client.WithWatch{true: server, false: fake.NewClientBuilder().WithScheme(scheme).Build()} // a late cache is empty
	cacheIsCurrent := true
	written := interceptor.NewClient(server, interceptor.Funcs{Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		return cached[cacheIsCurrent].Get(ctx, key, o, opts...)
	}})
	live := interceptor.NewClient(server, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		reads++
		return c.Get(ctx, key, o, opts...)
	}})
	p := New(written, live, Options{Servers: PeersPorts, Now: func() time.Time { return now }})
	policy := Policy(Class{}, "team-a", toAnyServer(), Operator{})
	change := func() {
		var is networkingv1.NetworkPolicy
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(policy), &is); err != nil {
			t.Fatal(err)
		}
		is.Spec.Egress = nil
		if err := server.Update(t.Context(), &is); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		what  string
		do    func()
		reads int
	}{
		{"the first pod", func() {}, 1},
		{"the next pod, at once", func() {}, 0},
		{"the cache does not show it", func() { cacheIsCurrent = false }, 1},
		{"it does", func() { cacheIsCurrent = true }, 0},
		{"another client changed it", change, 1},
		{"another client deleted it", func() { _ = server.Delete(t.Context(), policy.DeepCopy()) }, 1},
		{"a second later", func() { now = now.Add(confirmedFor) }, 1},
		{"the operator deleted it", func() { _ = p.Sweep(t.Context()) }, 1},
	} {
		reads = 0
		step.do()
		before := reads
		release, err := p.Acquire(t.Context(), "team-a", Class{})
		if err != nil {
			t.Fatal(err)
		}
		release()
		var is networkingv1.NetworkPolicy
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(policy), &is); err != nil || len(is.Spec.Egress) == 0 || reads-before != step.reads {
			t.Errorf("%s: read %d times, want %d; %v, %+v", step.what, reads-before, step.reads, err, is.Spec)
		}
	}
}

// A policy that could not be made keeps none from being deleted.
func TestAFailureHoldsNoPolicy(t *testing.T) {
	failing := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errStubborn
		},
	})
	p := New(failing, failing, Options{Servers: PeersPorts, Now: time.Now})
	if release, err := p.Acquire(t.Context(), "team-a", Class{}); !errors.Is(err, errStubborn) || release != nil {
		t.Fatalf("Acquire() = %v", err)
	}
	if !p.held.TryLock() {
		t.Error("the policies are held")
	}
}

// The operator does not remember each namespace that there ever was.
func TestWhatWasConfirmedIsForgotten(t *testing.T) {
	now, stub := time.Unix(1e9, 0), &policies{server: "10.0.0.1"}
	p := New(stub, stub, Options{Servers: PeersPorts, Now: func() time.Time { return now }})
	for _, namespace := range []string{"team-a", "team-b"} {
		release, err := p.Acquire(t.Context(), namespace, Class{})
		if err != nil {
			t.Fatal(err)
		}
		release()
	}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{confirmedFor - 1, 2}, {1, 0}} {
		now = now.Add(step.after)
		if err := p.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := 0
		p.confirmed.Range(func(any, any) bool { got++; return true })
		if got != step.want {
			t.Errorf("%d are remembered, want %d", got, step.want)
		}
	}
}

var errStubborn = errors.New("no")

// policies is a cluster of old policies that no pod needs.
type policies struct {
	client.Client

	stubborn string // the namespace that keeps its own
	in, gone []string
	server   string // the address of the API server
	reads    int    // how often it was read
	created  *networkingv1.NetworkPolicy
}

func (p *policies) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	slice, is := o.(*discoveryv1.EndpointSlice)
	if !is {
		return apierrors.NewNotFound(networkingv1.Resource("networkpolicies"), key.Name)
	}
	p.reads++
	slice.Ports = []discoveryv1.EndpointPort{{Port: new(int32(6443))}}
	slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{p.server}}}
	return nil
}

func (p *policies) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	p.created, _ = o.(*networkingv1.NetworkPolicy)
	return nil
}

func (p *policies) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if out, is := list.(*networkingv1.NetworkPolicyList); is {
		for _, ns := range p.in {
			out.Items = append(out.Items, networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{
				Namespace: ns, Name: Name("x"), Labels: map[string]string{v1alpha1.LabelEgress: "x"},
			}})
		}
	}
	return nil
}

func (p *policies) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	if o.GetNamespace() == p.stubborn {
		return errStubborn
	}
	p.gone = append(p.gone, o.GetNamespace())
	return nil
}
