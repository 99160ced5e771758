package workflow

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gc"
	"github.com/deckhand-dev/deckhand/internal/gen"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// cluster is a Reconciler with objects: release names nested, which names fixer.
func cluster(t *testing.T, more ...client.Object) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	lead := gen.Agent(func(a *v1alpha1.Agent) { a.Name, a.Spec.Tools = "lead", []v1alpha1.Tool{{Agent: "fixer"}} })
	all := append(more, gen.Agent(), gen.Model(), lead, nested(), release(outside),
		release(func(w *v1alpha1.Workflow) {
			w.Name, w.Spec.Nodes = "led", []v1alpha1.Node{{Name: "a", Agent: "lead", Prompt: "x"}}
		}),
		release(func(w *v1alpha1.Workflow) {
			w.Name, w.Spec.Nodes = "other", []v1alpha1.Node{{Name: "a", Agent: "nobody", Prompt: "x"}}
		}))
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).WithStatusSubresource(&v1alpha1.Workflow{}).
		WithIndex(&v1alpha1.Run{}, gc.UnfinishedRunsByRevision, gc.IndexUnfinishedRun).Build()
	return New(c, func() time.Time { return gen.Noon })
}

func nested() *v1alpha1.Workflow {
	return release(func(w *v1alpha1.Workflow) { w.Name = "nested" })
}

func outside(w *v1alpha1.Workflow) {
	w.Spec.Nodes = []v1alpha1.Node{{Name: "sub", Workflow: "nested"}}
}

func names(requests []reconcile.Request) []string {
	var out []string
	for _, r := range requests {
		out = append(out, r.Name)
	}
	return out
}

// Whatever changes or appears, all Workflows that may reach it are looked at.
func TestWhatIsLookedAtAgain(t *testing.T) {
	r := cluster(t)
	run := gen.Run(func(r *v1alpha1.Run) { r.Spec.Agent, r.Spec.Workflow = "", "release" })
	cases := map[string]struct{ got, want []string }{
		"the Workflow in another":     {names(r.reachingWorkflow(t.Context(), nested())), []string{"release"}},
		"an Agent, also through one":  {names(r.reachingAgent(t.Context(), gen.Agent())), []string{"led", "nested", "release"}},
		"an Agent that is new":        {names(r.reachingAgent(t.Context(), gen.Agent(func(a *v1alpha1.Agent) { a.Name = "nobody" }))), []string{"other"}},
		"a Model":                     {names(r.reachingModel(t.Context(), gen.Model())), []string{"led", "nested", "release"}},
		"a Toolset that nobody names": {names(r.reachingToolset(t.Context(), &v1alpha1.Toolset{})), nil},
		"a Run that has finished":     {names(workflowOfRun(t.Context(), run)), []string{"release"}},
		"a Run of an Agent":           {names(workflowOfRun(t.Context(), gen.Run())), nil},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// A version stays while an unfinished Run, or another version, names it.
func TestWhichVersionsAreUnused(t *testing.T) {
	w := release(outside)
	from := reaching(w)
	from.objects.Workflows["nested"] = nested()
	v, err := workflow.Of(w, from.objects)
	if err != nil {
		t.Fatal(err)
	}
	stored := v.ConfigMaps(gen.Namespace) // of fixer, nested and release
	outer, inner := stored[2], stored[1]
	unused := func(name string, objects ...client.Object) map[string]bool {
		t.Helper()
		seen, err := cluster(t, objects...).look(t.Context(), client.ObjectKey{Namespace: gen.Namespace, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return seen.versions.Unused
	}
	run := gen.Run(func(r *v1alpha1.Run) {
		r.Spec.Agent, r.Spec.Workflow, r.Status.WorkflowRevision = "", "release", v.Hash
	})
	cases := map[string]struct{ got, want map[string]bool }{
		"an unfinished Run":     {unused("release", outer.DeepCopy(), inner.DeepCopy(), run), map[string]bool{outer.Name: false}},
		"nobody":                {unused("release", outer.DeepCopy(), inner.DeepCopy()), map[string]bool{outer.Name: true}},
		"another version":       {unused("nested", outer.DeepCopy(), inner.DeepCopy()), map[string]bool{inner.Name: false}},
		"no other any more":     {unused("nested", inner.DeepCopy()), map[string]bool{inner.Name: true}},
		"a Workflow of no kind": {unused("other", outer.DeepCopy(), inner.DeepCopy()), map[string]bool{}},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("named by %s: unused -want +got:\n%s", name, diff)
		}
	}
	r := cluster(t, inner.DeepCopy())
	if got := names(r.neededBy(t.Context(), outer)); len(got) != 1 || got[0] != "nested" {
		t.Errorf("when the version goes that needed it, %v are looked at", got)
	}
	if !gc.WorkflowRevisionDeleted.Delete(event.DeleteEvent{Object: outer}) || gc.WorkflowRevisionDeleted.Delete(event.DeleteEvent{Object: stored[0]}) || gc.WorkflowRevisionDeleted.Create(event.CreateEvent{Object: outer}) {
		t.Error("other events than those of versions of Workflows that go are let through")
	}
	done := run.DeepCopy()
	now := done.CreationTimestamp
	done.Status.CompletionTime = &now
	if !gc.RunReleasedRevision.Update(event.UpdateEvent{ObjectOld: run, ObjectNew: done}) || gc.RunReleasedRevision.Update(event.UpdateEvent{ObjectOld: done, ObjectNew: done}) || !gc.RunReleasedRevision.Delete(event.DeleteEvent{Object: run}) {
		t.Error("a Run that finishes is not let through, or one that has")
	}
}

// What is reported once is not reported again.
func TestReport(t *testing.T) {
	r := cluster(t)
	key := client.ObjectKey{Namespace: gen.Namespace, Name: "release"}
	versions := map[string]bool{}
	for range 3 {
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		var w v1alpha1.Workflow
		if err := r.client.Get(t.Context(), key, &w); err != nil {
			t.Fatal(err)
		}
		versions[w.ResourceVersion] = true
		if w.Status.Nodes != 1 || len(w.Status.Conditions) != 3 || w.Status.Conditions[0].Message != "1 node" || w.Status.ObservedGeneration != 2 {
			t.Errorf("status is %+v", w.Status)
		}
	}
	if len(versions) != 1 {
		t.Errorf("it was written %d times", len(versions))
	}
}
