package controller_test

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/operator"
	"github.com/deckhand-dev/deckhand/internal/run/egress"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// networkPolicies gives the fixture NetworkPolicies, by the operator's own rights.
func (b *fixture) networkPolicies() *egress.Policies {
	b.egress = egress.New(b.operator, b.operator, egress.Options{Servers: egress.PeersAddresses, Now: func() time.Time { return b.now }, Log: logr.Discard()})
	return b.egress
}

func (b *fixture) policies() []networkingv1.NetworkPolicy {
	b.t.Helper()
	var list networkingv1.NetworkPolicyList
	if err := b.Admin.List(b.t.Context(), &list, client.InNamespace(b.namespace)); err != nil {
		b.t.Fatal(err)
	}
	return list.Items
}

// A policy is there before the pod, is shared, undone by nobody, and goes some
// minutes after the last pod that it is for.
func TestNetworkPolicyOfAPod(t *testing.T) {
	b := newFixture(t)
	egressPolicies := b.networkPolicies()
	b.reconcileUntilStable()
	pod, policies := b.onlyPod(), b.policies()
	if len(policies) != 1 {
		t.Fatalf("there are %d policies", len(policies))
	}
	p := policies[0]
	if selected := p.Spec.PodSelector.MatchLabels; selected[v1alpha1.LabelEgress] == "" || selected[v1alpha1.LabelEgress] != pod.Labels[v1alpha1.LabelEgress] {
		t.Errorf("the policy selects %v, the pod has %v", selected, pod.Labels)
	}
	first := b.run
	b.run = b.newNamed("y")
	b.reconcileUntilStable()
	if n := len(b.policies()); n != 1 {
		t.Errorf("two Runs that reach the same have %d policies", n)
	}
	loosened := p.DeepCopy()
	loosened.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
	if err := b.Admin.Update(t.Context(), loosened); err != nil {
		t.Fatal(err)
	}
	b.run = b.newNamed("z")
	b.reconcileUntilStable()
	if diff := cmp.Diff(p.Spec, b.policies()[0].Spec); diff != "" {
		t.Errorf("what somebody made of the policy stays:\n%s", diff)
	}
	b.now = b.now.Add(time.Hour)
	sweep(t, egressPolicies)
	if len(b.policies()) != 1 {
		t.Error("the policy goes while pods need it")
	}
	for _, pod := range b.pods() {
		b.endRunner(&pod, 0, "")
	}
	sweep(t, egressPolicies)
	if n := len(b.policies()); n != 0 {
		t.Errorf("%d policies stay", n)
	}
	b.run = first
}

func sweep(t *testing.T, f *egress.Policies) {
	t.Helper()
	if err := f.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A recent policy may be one whose pod is on its way.
func TestARecentNetworkPolicyIsKept(t *testing.T) {
	b := newFixture(t)
	egressPolicies := b.networkPolicies()
	class := egress.Of(task.Snapshot{}, b.namespace)
	release, err := egressPolicies.Acquire(t.Context(), b.namespace, class)
	if err != nil {
		t.Fatal(err)
	}
	release()
	sweep(t, egressPolicies)
	if len(b.policies()) != 1 {
		t.Error("the policy is gone")
	}
	b.now = b.now.Add(10 * time.Minute)
	sweep(t, egressPolicies)
	if len(b.policies()) != 0 {
		t.Error("the policy stays")
	}
}

// The API server is let through at the addresses that it has, and policies follow
// it where it goes.
func TestNetworkPolicyFollowsTheAPIServer(t *testing.T) {
	b := newFixture(t)
	egressPolicies := b.networkPolicies()
	var slice discoveryv1.EndpointSlice
	if err := b.Admin.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kubernetes"}, &slice); err != nil {
		t.Skipf("this API server does not say where it is: %v", err)
	}
	b.reconcileUntilStable()
	rule := b.policies()[0].Spec.Egress[1]
	if len(rule.To) == 0 || rule.To[0].IPBlock.CIDR != slice.Endpoints[0].Addresses[0]+"/32" || rule.Ports[0].Port.IntValue() != int(*slice.Ports[0].Port) {
		t.Errorf("the API server is let through by %+v, and is at %v", rule, slice.Endpoints)
	}
	p := b.policies()[0]
	p.Spec.Egress[1].To = []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "192.0.2.1/32"}}}
	if err := b.Admin.Update(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	sweep(t, egressPolicies)
	if diff := cmp.Diff(rule, b.policies()[0].Spec.Egress[1]); diff != "" {
		t.Errorf("the policy does not follow:\n%s", diff)
	}
}

// A user who may edit NetworkPolicies opens no pod at work: its policy comes back at once.
func TestTheNetworkPolicyOfAPodAtWorkIsRestored(t *testing.T) {
	s := apitest.Get(t)
	namespace := s.Namespace(t)
	stop := start(t, newOperator(t, namespace, func(o *operator.Options) { o.NetworkPolicies = true }))
	defer func() {
		if err := stop(); err != nil {
			t.Errorf("stopping the operator: %v", err)
		}
	}()
	createRuns(t, namespace, 1)
	recorded(t, namespace, 1)
	var list networkingv1.NetworkPolicyList
	labeled := func() int {
		if err := s.Admin.List(t.Context(), &list, client.InNamespace(namespace), client.HasLabels{v1alpha1.LabelEgress}); err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	eventually(t, 1, "NetworkPolicies are created", labeled)
	want := list.Items[0]
	for name, damage := range map[string]func(*networkingv1.NetworkPolicy) error{
		"deleted": func(p *networkingv1.NetworkPolicy) error { return s.Admin.Delete(t.Context(), p) },
		"opened": func(p *networkingv1.NetworkPolicy) error {
			p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
			return s.Admin.Update(t.Context(), p)
		},
		"for other pods": func(p *networkingv1.NetworkPolicy) error {
			p.Spec.PodSelector.MatchLabels = map[string]string{"a": "b"}
			return s.Admin.Update(t.Context(), p)
		},
		"without its label": func(p *networkingv1.NetworkPolicy) error {
			p.Labels = nil
			return s.Admin.Update(t.Context(), p)
		},
		"with another label": func(p *networkingv1.NetworkPolicy) error {
			p.Labels[v1alpha1.LabelEgress] = "another"
			return s.Admin.Update(t.Context(), p)
		},
		"with another label, and opened": func(p *networkingv1.NetworkPolicy) error {
			p.Labels[v1alpha1.LabelEgress] = "another"
			p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
			return s.Admin.Update(t.Context(), p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var is networkingv1.NetworkPolicy
			if err := s.Admin.Get(t.Context(), client.ObjectKeyFromObject(&want), &is); err != nil {
				t.Fatal(err)
			}
			if err := damage(&is); err != nil {
				t.Fatal(err)
			}
			eventually(t, 1, "NetworkPolicies are as they were", func() int {
				if labeled() == 0 || !cmp.Equal(list.Items[0].Spec, want.Spec) || !cmp.Equal(list.Items[0].Labels, want.Labels) {
					return 0
				}
				return len(list.Items)
			})
		})
	}
}
