package run

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A pod keeps the destinations that it was started with, whatever the settings of the operator
// have become: its policy is restored to these.
func TestThePolicyOfAPodAtWorkIsRestoredAsItWas(t *testing.T) {
	if testing.Short() {
		t.Skip("has one goroutine, so it runs without the race detector")
	}
	const withoutClass = `{"metadata":{"annotations":{"deckhand.dev/egress-class":null}}}`
	proxied := runnerpod.Defaults{Proxy: &v1alpha1.Proxy{HTTPS: "http://proxy.example.com:3128"}}
	traced := runnerpod.Defaults{Traces: &task.Traces{Endpoint: "https://collector.example.com:4318"}}
	for name, tc := range map[string]settingsChange{
		"the settings are as they were":                           {},
		"the pod was created before operators recorded its class": {patch: withoutClass},
		"a proxy was set since":                                   {is: proxied},
		"the proxy was removed since":                             {was: proxied},
		"a collector of traces was set since":                     {is: traced},
		"the collector of traces was removed since":               {was: traced},
		"the proxy was replaced by a collector of traces":         {was: proxied, is: traced},
		"a proxy was set since, and the pod lost its label":       {is: proxied, patch: `{"metadata":{"labels":{"deckhand.dev/egress":null}}}`},
	} {
		for loss, lose := range map[string]func(*refuser, *networkingv1.NetworkPolicy) error{
			"deleted": func(s *refuser, p *networkingv1.NetworkPolicy) error { return s.Delete(s.t.Context(), p) },
			"opened": func(s *refuser, p *networkingv1.NetworkPolicy) error {
				p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
				return s.Update(s.t.Context(), p)
			},
		} {
			t.Run(name+", "+loss, func(t *testing.T) {
				tc.loses(t, lose)
			})
		}
	}
}

// A settingsChange changes the settings of the operator while a pod works.
type settingsChange struct {
	was, is runnerpod.Defaults
	patch   string // of the pod, before its policy is lost
}

// loses fails the test unless a policy that is lost comes back.
func (tc settingsChange) loses(t *testing.T, lose func(*refuser, *networkingv1.NetworkPolicy) error) {
	t.Helper()
	s := newRefuser(t, gen.Run(), gen.Agent())
	restoring := func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
		if _, isPod := o.(*corev1.Pod); isPod && len(s.policies()) == 0 {
			t.Error("the pod gets its label before the policy exists")
		}
		return c.Patch(ctx, o, patch, opts...)
	}
	s.reconciler.connect(interceptor.NewClient(s, interceptor.Funcs{Get: getCached, Patch: restoring}), s, nil)
	s.reconciler.podDefaults = tc.was
	s.begin()
	s.report()
	s.reconcileAll(1)
	want := s.policies()
	if len(want) != 1 {
		t.Fatalf("there are %d NetworkPolicies", len(want))
	}
	s.reconciler.podDefaults = tc.is
	if tc.patch != "" {
		s.patchPod("x-1", tc.patch)
	}
	if err := lose(s, want[0].DeepCopy()); err != nil {
		t.Fatal(err)
	}
	s.reconcileAll(2)
	got := s.policies()
	if len(got) != 1 || got[0].Name != want[0].Name {
		t.Fatalf("the NetworkPolicies are %+v", got)
	}
	if diff := cmp.Diff(want[0].Spec, got[0].Spec); diff != "" {
		t.Errorf("the policy (-was +is):\n%s", diff)
	}
	if label := s.pod("x-1").Labels[v1alpha1.LabelEgress]; got[0].Spec.PodSelector.MatchLabels[v1alpha1.LabelEgress] != label {
		t.Errorf("the policy does not select the pod, whose label is %q", label)
	}
}

func (s *refuser) policies() []networkingv1.NetworkPolicy {
	s.t.Helper()
	var list networkingv1.NetworkPolicyList
	if err := s.List(s.t.Context(), &list, client.InNamespace(gen.Namespace)); err != nil {
		s.t.Fatal(err)
	}
	return list.Items
}

func (s *refuser) pod(name string) *corev1.Pod {
	s.t.Helper()
	var pod corev1.Pod
	if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: gen.Namespace, Name: name}, &pod); err != nil {
		s.t.Fatal(err)
	}
	return &pod
}

func (s *refuser) patchPod(name, patch string) {
	s.t.Helper()
	if err := s.Patch(s.t.Context(), s.pod(name), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		s.t.Fatal(err)
	}
}

// The destinations of a pod are not known when it has not recorded them and the settings have changed.
// A policy that was deleted then stays so, which an event tells.
func TestAPolicyThatCannotBeRestoredIsTold(t *testing.T) {
	const want = "Warning NetworkPolicyMissing NetworkPolicy deckhand-egress-"
	s := newRefuser(t, gen.Run(), gen.Agent())
	s.reconciler.connect(interceptor.NewClient(s, interceptor.Funcs{Get: getCached}), s, nil)
	recorder := events.NewFakeRecorder(1000)
	s.reconciler.events = recorder
	s.begin()
	s.report()
	s.reconcileAll(1)
	s.reconciler.podDefaults = runnerpod.Defaults{Proxy: &v1alpha1.Proxy{HTTPS: "http://proxy.example.com:3128"}}
	s.patchPod("x-1", `{"metadata":{"annotations":{"deckhand.dev/egress-class":null}}}`)
	s.reconcileAll(1)
	if told := drain(recorder); strings.Contains(told, want) {
		t.Errorf("the policy exists, and the events are:\n%s", told)
	}
	if err := s.Delete(t.Context(), &s.policies()[0]); err != nil {
		t.Fatal(err)
	}
	s.reconcileAll(1)
	if told := drain(recorder); !strings.Contains(told, want) {
		t.Errorf("the policy is lost, and the events are:\n%s", told)
	}
}

// drain returns the events that were recorded until now.
func drain(r *events.FakeRecorder) string {
	var out strings.Builder
	for len(r.Events) > 0 {
		out.WriteString(<-r.Events + "\n")
	}
	return out.String()
}
