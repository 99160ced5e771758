package ready

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/gc"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// cluster returns a client of objects: release refers to nested, which refers to fixer.
func cluster(t *testing.T, more ...client.Object) client.Client {
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
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).WithStatusSubresource(&v1alpha1.Workflow{}, &v1alpha1.Agent{}, &v1alpha1.Model{}, &v1alpha1.Toolset{}).
		WithIndex(&v1alpha1.Run{}, gc.UnfinishedRunsByRevision, gc.IndexUnfinishedRun).
		WithIndex(&corev1.Pod{}, gc.LivePodsByRevision, gc.IndexLivePod).
		WithIndex(&v1alpha1.Run{}, RunsByModel, IndexRunByModel).Build()
}

// testEnvironment returns an environment whose events nobody reads.
func testEnvironment(c client.Client, now func() time.Time) environment {
	return environment{c, &events.FakeRecorder{}, now}
}

func nested() *v1alpha1.Workflow {
	return release(func(w *v1alpha1.Workflow) { w.Name = "nested" })
}

func outside(w *v1alpha1.Workflow) {
	w.Spec.Nodes = []v1alpha1.Node{{Name: "sub", Workflow: "nested"}}
}

func atNoon() time.Time { return gen.Noon }

// Whatever changes or appears, all Workflows that may reach it are reconciled.
func TestDependentsOfWorkflows(t *testing.T) {
	c := cluster(t)
	run := gen.Run(func(r *v1alpha1.Run) { r.Spec.Agent, r.Spec.Workflow = "", "release" })
	cases := map[string]struct {
		dependents dependents
		changed    client.Object
		want       []string
	}{
		"the Workflow in another":     {workflowsUsingWorkflow, nested(), []string{"nested", "release"}},
		"an Agent, also through one":  {workflowsUsing(agentsUsingAgent), gen.Agent(), []string{"led", "nested", "release"}},
		"an Agent that is new":        {workflowsUsing(agentsUsingAgent), gen.Agent(func(a *v1alpha1.Agent) { a.Name = "nobody" }), []string{"other"}},
		"a Model":                     {workflowsUsing(agentsUsingModel), gen.Model(), []string{"led", "nested", "release"}},
		"a Toolset that no Agent has": {workflowsUsing(agentsUsingToolset), &v1alpha1.Toolset{}, nil},
		"a Run that has finished":     {workflowOfRun, run, []string{"release"}},
		"a Run of an Agent":           {workflowOfRun, gen.Run(), nil},
	}
	for name, tc := range cases {
		got, err := tc.dependents(t.Context(), c, tc.changed)
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s: -want +got:\n%s\n%v", name, diff, err)
		}
	}
}

// A revision is kept while an unfinished Run, or another revision, refers to it.
func TestWhichRevisionsOfWorkflowsAreUnused(t *testing.T) {
	w := release(outside)
	objects := objectsOf(w)
	objects.Workflows["nested"] = nested()
	v, err := workflow.Of(w, objects)
	if err != nil {
		t.Fatal(err)
	}
	stored := v.ConfigMaps(gen.Namespace) // of fixer, nested and release
	outer, inner := stored[2], stored[1]
	unused := func(name string, objects ...client.Object) map[string]bool {
		t.Helper()
		seen, err := newReconciler(workflows, testEnvironment(cluster(t, objects...), atNoon)).observe(t.Context(), client.ObjectKey{Namespace: gen.Namespace, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return seen.revisions.Unused
	}
	run := gen.Run(func(r *v1alpha1.Run) {
		r.Spec.Agent, r.Spec.Workflow, r.Status.WorkflowRevision = "", "release", v.Hash
	})
	cases := map[string]struct{ got, want map[string]bool }{
		"an unfinished Run":     {unused("release", outer.DeepCopy(), inner.DeepCopy(), run), map[string]bool{outer.Name: false}},
		"nobody":                {unused("release", outer.DeepCopy(), inner.DeepCopy()), map[string]bool{outer.Name: true}},
		"another revision":      {unused("nested", outer.DeepCopy(), inner.DeepCopy()), map[string]bool{inner.Name: false}},
		"no other any more":     {unused("nested", inner.DeepCopy()), map[string]bool{inner.Name: true}},
		"a Workflow of no kind": {unused("other", outer.DeepCopy(), inner.DeepCopy()), map[string]bool{}},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("named by %s: unused -want +got:\n%s", name, diff)
		}
	}
	if got, err := workflowsRequiredBy(t.Context(), cluster(t, inner.DeepCopy()), outer); len(got) != 1 || got[0] != "nested" || err != nil {
		t.Errorf("when the revision is deleted that required it, %v are reconciled: %v", got, err)
	}
	if !gc.WorkflowRevisionDeleted.Delete(event.DeleteEvent{Object: outer}) || gc.WorkflowRevisionDeleted.Delete(event.DeleteEvent{Object: stored[0]}) || gc.WorkflowRevisionDeleted.Create(event.CreateEvent{Object: outer}) {
		t.Error("other events than those of deleted revisions of Workflows are let through")
	}
	done := run.DeepCopy()
	now := done.CreationTimestamp
	done.Status.CompletionTime = &now
	if !gc.RunReleasedRevision.Update(event.UpdateEvent{ObjectOld: run, ObjectNew: done}) || gc.RunReleasedRevision.Update(event.UpdateEvent{ObjectOld: done, ObjectNew: done}) || !gc.RunReleasedRevision.Delete(event.DeleteEvent{Object: run}) {
		t.Error("a Run that finishes is not let through, or one that has")
	}
}
