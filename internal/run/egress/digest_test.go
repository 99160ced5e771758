package egress

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestDigestTellsSpecsApart(t *testing.T) {
	c := Class{Ports: []int32{443}, Namespaces: []string{"ai"}}
	spec := Policy(c, "team-a", toAnyServer(), Operator{}).Spec
	cases := map[string]struct {
		change                func(*networkingv1.NetworkPolicySpec)
		same, hasOtherServers bool
	}{
		"the same":     {func(*networkingv1.NetworkPolicySpec) {}, true, false},
		"another rule": {func(s *networkingv1.NetworkPolicySpec) { s.Egress[2].Ports = nil }, false, false},
		"one rule more": {func(s *networkingv1.NetworkPolicySpec) {
			s.Egress = append(s.Egress, networkingv1.NetworkPolicyEgressRule{})
		}, false, false},
		"a rule for incoming":      {func(s *networkingv1.NetworkPolicySpec) { s.Ingress = []networkingv1.NetworkPolicyIngressRule{{}} }, false, false},
		"other policy types":       {func(s *networkingv1.NetworkPolicySpec) { s.PolicyTypes = s.PolicyTypes[:1] }, false, false},
		"other pods":               {func(s *networkingv1.NetworkPolicySpec) { s.PodSelector.MatchLabels = nil }, false, false},
		"another rule for servers": {func(s *networkingv1.NetworkPolicySpec) { s.Egress[serversRule].Ports = nil }, false, true},
		"no rule for servers":      {func(s *networkingv1.NetworkPolicySpec) { s.Egress = s.Egress[:1] }, false, false},
		"nothing":                  {func(s *networkingv1.NetworkPolicySpec) { *s = networkingv1.NetworkPolicySpec{} }, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			other := *spec.DeepCopy()
			tc.change(&other)
			digest := Digest(other)
			if got := cmp.Equal(digest, Digest(spec)); got != tc.same {
				t.Errorf("the digests are the same: %t", got)
			}
			if diff := cmp.Diff(digest, Digest(digest)); diff != "" {
				t.Errorf("the digest of the digest -want +got:\n%s", diff)
			}
			if got := hasOtherServers(digest, toAnyServer()); got != tc.hasOtherServers {
				t.Errorf("hasOtherServers() = %t", got)
			}
		})
	}
}

// With digests in the cache the operator reads a policy only where it did before, and updates the
// rule for the API server in the policy itself.
func TestPoliciesAreKeptUpFromDigests(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(networkingv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	reads := 0
	want := Policy(Class{Ports: []int32{443}}, "team-a", toAnyServer(), Operator{})
	needing := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "x-1", Labels: want.Spec.PodSelector.MatchLabels}}
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(needing).Build()
	live := interceptor.NewClient(server, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		reads++
		return c.Get(ctx, key, o, opts...)
	}})
	p := New(digested(server), live, Options{Servers: PeersPorts, Now: func() time.Time { return time.Unix(0, 0) }})
	change := func(change func(*networkingv1.NetworkPolicySpec)) {
		var is networkingv1.NetworkPolicy
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(want), &is); err != nil {
			t.Fatal(err)
		}
		change(&is.Spec)
		if err := server.Update(t.Context(), &is); err != nil {
			t.Fatal(err)
		}
	}
	acquire := func() error {
		release, err := p.Acquire(t.Context(), "team-a", Class{Ports: []int32{443}})
		if err == nil {
			release()
		}
		return err
	}
	sweep := func() error { return p.Sweep(t.Context()) }
	for _, step := range []struct {
		what  string
		do    func() error
		reads int
	}{
		{"the first pod", acquire, 1},
		{"the next pod", acquire, 0},
		{"a sweep", sweep, 0},
		{"a sweep after the API server moved", func() error {
			change(func(s *networkingv1.NetworkPolicySpec) {
				s.Egress[serversRule] = toServers([]Address{{"10.0.0.1", 6443}})
			})
			return sweep()
		}, 1},
		{"the next sweep", sweep, 0},
		{"a pod after a user opened everything", func() error {
			change(func(s *networkingv1.NetworkPolicySpec) {
				s.Egress = append(s.Egress, networkingv1.NetworkPolicyEgressRule{})
			})
			return acquire()
		}, 1},
	} {
		reads = 0
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		var is networkingv1.NetworkPolicy
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(want), &is); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if diff := cmp.Diff(want.Spec, is.Spec); diff != "" || reads != step.reads {
			t.Errorf("%s: read %d times, want %d; -want +got:\n%s", step.what, reads, step.reads, diff)
		}
	}
}

// A user may have changed a policy since the cache saw it.
func TestAPolicyWithoutARuleForServersIsLeft(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := networkingv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cached := Policy(Class{}, "team-a", toServers([]Address{{"10.0.0.1", 6443}}), Operator{})
	changed := cached.DeepCopy()
	changed.Spec.Egress = changed.Spec.Egress[:serversRule]
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(changed).Build()
	p := New(server, server, Options{Servers: PeersPorts})
	if err := p.updateServers(t.Context(), cached, toServers(nil)); err != nil {
		t.Fatal(err)
	}
	var is networkingv1.NetworkPolicy
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(cached), &is); err != nil || len(is.Spec.Egress) != serversRule {
		t.Errorf("it has %d rules: %v", len(is.Spec.Egress), err)
	}
}

// digested returns a client that shows policies as the cache keeps them.
func digested(server client.WithWatch) client.Client {
	return interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if p, is := o.(*networkingv1.NetworkPolicy); is {
				p.Spec = Digest(p.Spec)
			}
			return err
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			if all, is := list.(*networkingv1.NetworkPolicyList); is {
				for i := range all.Items {
					all.Items[i].Spec = Digest(all.Items[i].Spec)
				}
			}
			return err
		},
	})
}
