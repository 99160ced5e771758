package run

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/egress"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A first pod is created only for a Run that is still as it was observed: the cache may be late.
func TestAFirstPodIsForTheRunAsItIsNow(t *testing.T) {
	over := metav1.NewTime(gen.Noon)
	for name, tc := range map[string]struct {
		now      func(*v1alpha1.Run)
		outdated bool
	}{
		"it is the same":           {func(*v1alpha1.Run) {}, false},
		"its conditions changed":   {func(r *v1alpha1.Run) { r.Status.Conditions[0].Message = "other" }, false},
		"another Run has its name": {func(r *v1alpha1.Run) { r.UID = "another" }, true},
		"a user changed its spec":  {func(r *v1alpha1.Run) { r.Generation++ }, true},
		"it is being deleted":      {func(r *v1alpha1.Run) { r.DeletionTimestamp, r.Finalizers = &over, []string{"example.com/f"} }, true},
		"an attempt was recorded":  {func(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{Number: 1} }, true},
		"a runner has reported":    {func(r *v1alpha1.Run) { r.Status.Progress = &v1alpha1.RunProgress{Attempt: 1} }, true},
		"it has finished":          {func(r *v1alpha1.Run) { r.Status.CompletionTime = &over }, true},
		"it was deleted":           {func(r *v1alpha1.Run) { r.Name = "y" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newRefuser(t, gen.Run(tc.now), gen.Agent())
			seen := newCluster(t, gen.Run(), gen.Agent()).observed()
			got, err := s.reconciler.beginFirst(t.Context(), seen, plan{nextAttempt: &attemptReservation{Attempt: &v1alpha1.Attempt{Number: 1}}})
			if err != nil || got.outdated != tc.outdated || (got.prepared == nil) != tc.outdated {
				t.Errorf("%+v, %v; want outdated %t", got, err, tc.outdated)
			}
		})
	}
}

// A pod with the name of an attempt is that of the attempt, or of another Run.
func TestFindPod(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent())
	c.begin()
	own := c.pods["x-1"].DeepCopy()
	changed := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := own.DeepCopy()
		change(pod)
		return pod
	}
	for name, tc := range map[string]struct {
		pod   *corev1.Pod
		taken bool
	}{
		"its own":             {own, false},
		"that of another Run": {changed(func(p *corev1.Pod) { p.Spec.ServiceAccountName, p.UID = "default", "other" }), true},
		"of another attempt": {changed(func(p *corev1.Pod) {
			p.Annotations[v1alpha1.AnnotationTask] = strings.Replace(p.Annotations[v1alpha1.AnnotationTask], `"attempt":1`, `"attempt":2`, 1)
		}), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newRefuser(t, gen.Run(), gen.Agent())
			pod := tc.pod.DeepCopy()
			if err := s.Create(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			seen := c.observed()
			seen.run.Status.Attempt.PodUID = ""
			got, err := s.reconciler.findPod(t.Context(), seen, own)
			if err != nil || got.podNameTaken != tc.taken || (got.created == nil) != tc.taken {
				t.Errorf("%+v, %v; want taken %t", got, err, tc.taken)
			}
		})
	}
	s := newRefuser(t, gen.Run(), gen.Agent())
	if _, err := s.reconciler.findPod(t.Context(), c.observed(), own); err == nil || !strings.HasPrefix(err.Error(), "getting Pod x-1: ") {
		t.Errorf("there is no pod any more: %v", err)
	}
}

var errUnreadable = errors.New("it cannot be read")

// When the operator stops it records attempts that nobody else has recorded.
func TestRecordNow(t *testing.T) {
	key := client.ObjectKey{Namespace: gen.Namespace, Name: "x"}
	for name, tc := range map[string]struct {
		err   error
		fails bool
	}{
		"it is recorded":                {nil, false},
		"another operator has recorded": {apierr.Changed("Run", "x"), false},
		"there is no time left":         {context.DeadlineExceeded, false},
		"the Run cannot be read":        {errUnreadable, true},
	} {
		s := newRefuser(t, gen.Run(), gen.Agent())
		s.reconciler.client = interceptor.NewClient(s, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if _, is := o.(*v1alpha1.Run); is && tc.err != nil {
					return tc.err
				}
				return c.Get(ctx, key, o, opts...)
			},
		})
		err := s.reconciler.recordNow(t.Context(), key)
		if (err != nil) != tc.fails || tc.fails && (!errors.Is(err, tc.err) || !strings.HasPrefix(err.Error(), "recording the attempt of Run team-a/x: ")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := newRefuser(t, gen.Run(), gen.Agent())
	if err := s.reconciler.recordNow(t.Context(), key); err != nil || s.get().Status.ObservedGeneration == 0 && messageOf(s.get()) == "Waiting for the operator" && len(podsIn(t, s)) == 0 && !hasRevision(t, s) {
		t.Errorf("nothing was done for the Run: %v", err)
	}
	s.reconciler.client = interceptor.NewClient(s, interceptor.Funcs{
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, o client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
			t.Errorf("the status of %q is written for a Run that is gone", o.GetName())
			return nil
		},
	})
	if err := s.reconciler.recordNow(t.Context(), client.ObjectKey{Namespace: gen.Namespace, Name: "gone"}); err != nil {
		t.Errorf("a Run that is gone: %v", err)
	}
}

func podsIn(t *testing.T, c client.Client) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func hasRevision(t *testing.T, c client.Client) bool {
	t.Helper()
	var list corev1.ConfigMapList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	return len(list.Items) > 0
}

// A NetworkPolicy that was changed wakes the Runs whose pods it is for.
func TestWhichRunsANetworkPolicyIsFor(t *testing.T) {
	label := egress.Class{}.Label()
	pod := func(name, label, namespace string) client.Object {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-1", Labels: map[string]string{v1alpha1.LabelEgress: label, v1alpha1.LabelRun: name}},
			Spec:       corev1.PodSpec{ServiceAccountName: v1alpha1.RunnerServiceAccount},
		}
	}
	f := runFinder{server(t, pod("a", label, gen.Namespace), pod("b", label, gen.Namespace), pod("c", "other", gen.Namespace), pod("d", label, "team-b"))}
	policy := func(name string) client.Object {
		return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: name}}
	}
	if got := woken(f.limitedBy(t.Context(), policy(egress.Name(label)))); got != "team-a/a team-a/b" {
		t.Errorf("it is for %q", got)
	}
	if got := woken(f.limitedBy(t.Context(), policy("of-a-user"))); got != "" {
		t.Errorf("the policy of a user is for %q", got)
	}
}

// What an agent waits for: its child Runs, and the Agents of those that it asks for.
func TestWhatAnAgentDelegates(t *testing.T) {
	reviewer := gen.Agent(func(a *v1alpha1.Agent) { a.Name = "reviewer" })
	c := newCluster(t, gen.Run(), gen.Agent(delegatesTo()))
	child := func(id string, mods ...func(*v1alpha1.Run)) *v1alpha1.Run {
		return gen.Run(append([]func(*v1alpha1.Run){func(r *v1alpha1.Run) {
			r.Name, r.UID = childNames(c.run, id)[0], types.UID("uid-"+id)
			r.Labels = map[string]string{v1alpha1.LabelParentRun: "x", v1alpha1.LabelRequest: requestLabel(id)}
			r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c.run, v1alpha1.GroupVersion.WithKind("Run"))}
		}}, mods...)...)
	}
	foreign := func(r *v1alpha1.Run) { r.OwnerReferences[0].UID = "another" }
	asks := []v1alpha1.PendingRequest{review("s1c1"), question("s1c2", "Which?")}
	for name, tc := range map[string]struct {
		cached, live []client.Object
		delegated    bool
		children     int
		agent        bool
	}{
		"it asks for one":                          {[]client.Object{reviewer}, nil, false, 0, true},
		"it asks for one of an Agent that is gone": {nil, nil, false, 0, false},
		"it has one":                               {[]client.Object{reviewer, child("s1c1")}, nil, true, 1, false},
		"only the API server has it":               {[]client.Object{reviewer}, []client.Object{child("s1c1")}, true, 1, false},
		"it was deleted":                           {[]client.Object{reviewer}, nil, true, 0, false},
		"another Run has its name":                 {[]client.Object{reviewer}, []client.Object{child("s1c1", foreign)}, true, 0, false},
		"a Run with its labels is another's":       {[]client.Object{reviewer, child("s1c1", foreign)}, nil, false, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			copies := func(all []client.Object) (out []client.Object) {
				for _, o := range all {
					out = append(out, o.DeepCopyObject().(client.Object))
				}
				return out
			}
			s := c.observed()
			s.run.Status.Attempt = &v1alpha1.Attempt{Number: 1}
			s.run.Status.Progress = &v1alpha1.RunProgress{Version: task.Version, Attempt: 1, Pending: asks}
			if tc.delegated {
				s.run.Status.Internal.Delegated = []string{childMark(requestLabel("s1c1"))}
			}
			if err := (childRuns{server(t, copies(tc.cached)...), server(t, copies(tc.live)...)}).observe(t.Context(), &s); err != nil {
				t.Fatal(err)
			}
			if len(s.children) != tc.children || (s.agents["reviewer"] != nil) != tc.agent {
				t.Errorf("%d children, and the Agents %v", len(s.children), s.agents)
			}
		})
	}
	idle := newCluster(t, gen.Run(), gen.Agent()).observed()
	idle.agents = nil
	if err := (childRuns{}).observe(t.Context(), &idle); err != nil || idle.agents != nil {
		t.Errorf("an agent that delegates nothing: %v", err)
	}
}
