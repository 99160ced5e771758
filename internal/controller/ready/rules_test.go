package ready

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/gc"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

func agentState(a *v1alpha1.Agent) state[*v1alpha1.Agent, snapshot.Objects] {
	return state[*v1alpha1.Agent, snapshot.Objects]{exists: a != nil, object: a, refs: gen.Objects(), now: gen.Noon, revisions: gc.Revisions{Unused: map[string]bool{}}}
}

func workflowState(w *v1alpha1.Workflow) state[*v1alpha1.Workflow, workflow.Objects] {
	return state[*v1alpha1.Workflow, workflow.Objects]{exists: w != nil, object: w, refs: objectsOf(release()), now: gen.Noon, revisions: gc.Revisions{Unused: map[string]bool{}}}
}

func TestWhichRevisionsAreDeleted(t *testing.T) {
	current, old := agentRevision(t, gen.Agent(), time.Hour), agentRevision(t, gen.Agent(otherInstructions), time.Hour)
	young := agentRevision(t, gen.Agent(otherInstructions), 20*time.Second)
	cases := map[string]struct {
		agent    *v1alpha1.Agent
		revision corev1.ConfigMap
		unused   bool
		deleted  bool
		wake     time.Duration
	}{
		"the current one is kept":                        {gen.Agent(), current, true, false, 0},
		"an old one that a Run needs is kept":            {gen.Agent(), old, false, false, 0},
		"an old one that nothing needs is deleted":       {gen.Agent(), old, true, true, 0},
		"a young one may be needed soon":                 {gen.Agent(), young, true, false, 40 * time.Second},
		"all unused ones of a deleted Agent are deleted": {nil, current, true, true, 0},
		"those that its last Runs need are kept":         {nil, current, false, false, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := agentState(tc.agent)
			s.revisions = gc.Revisions{Stored: []corev1.ConfigMap{tc.revision}, Unused: map[string]bool{tc.revision.Name: tc.unused}}
			p := agents.decide(s)
			if deleted := len(p.remove) == 1; deleted != tc.deleted || p.wake != tc.wake {
				t.Errorf("deleted %t, wake %s; want %t, %s", deleted, p.wake, tc.deleted, tc.wake)
			}
			if gone := tc.agent == nil; gone != (len(p.conditions) == 0) {
				t.Errorf("the conditions are %v", p.conditions)
			}
		})
	}
}

func TestWhichRevisionsOfWorkflowsAreDeleted(t *testing.T) {
	current, old := workflowRevision(t, release(), time.Hour), workflowRevision(t, release(otherPrompt), time.Hour)
	invalid := release(func(w *v1alpha1.Workflow) { w.Spec.Nodes[0].When = "1" })
	cases := map[string]struct {
		workflow *v1alpha1.Workflow
		revision corev1.ConfigMap
		deleted  bool
	}{
		"the current one is kept":                          {release(), current, false},
		"an old one that nothing needs is deleted":         {release(), old, true},
		"all of one that is deleted are deleted":           {nil, current, true},
		"of one that is not Ready all are old and deleted": {invalid, current, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := workflowState(tc.workflow)
			s.revisions = gc.Revisions{Stored: []corev1.ConfigMap{tc.revision}, Unused: map[string]bool{tc.revision.Name: true}}
			if p := workflows.decide(s); (len(p.remove) == 1) != tc.deleted {
				t.Errorf("deletes %d, want %t", len(p.remove), tc.deleted)
			}
		})
	}
}

// Whatever is stored, after acting there is nothing left to do but to wait for young
// revisions.
func TestEveryAgentSettles(t *testing.T) {
	testSettles(t, agents, agentState(gen.Agent()), func(i int) corev1.ConfigMap {
		return agentRevision(t, gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Instructions = fmt.Sprint(i) }), time.Duration(i)*30*time.Second)
	})
}

func TestEveryWorkflowSettles(t *testing.T) {
	testSettles(t, workflows, workflowState(release()), func(i int) corev1.ConfigMap {
		return workflowRevision(t, release(func(w *v1alpha1.Workflow) { w.Spec.Nodes[0].Prompt = fmt.Sprint(i) }), time.Duration(i)*30*time.Second)
	})
}

func testSettles[T client.Object, R any](t *testing.T, k kind[T, R], start state[T, R], revision func(i int) corev1.ConfigMap) {
	t.Helper()
	for mask := range 1 << 6 {
		s := start
		s.exists = mask&1 == 0
		s.revisions = gc.Revisions{Unused: map[string]bool{}}
		for i := range 5 {
			cm := revision(i)
			s.revisions.Stored = append(s.revisions.Stored, cm)
			s.revisions.Unused[cm.Name] = mask&(2<<i) != 0
		}
		for range 10 {
			p := k.decide(s)
			s.revisions.Stored = without(s.revisions.Stored, p.remove)
			s.now = s.now.Add(p.wake)
		}
		last := k.decide(s)
		if len(last.remove) > 0 || last.wake > 0 {
			t.Errorf("state %06b does not settle: %d to delete, wake in %s", mask, len(last.remove), last.wake)
		}
		if diff := cmp.Diff(last, k.decide(s), cmp.AllowUnexported(plan{})); diff != "" {
			t.Errorf("deciding twice differs:\n%s", diff)
		}
	}
}

func without(revisions, deleted []corev1.ConfigMap) []corev1.ConfigMap {
	var kept []corev1.ConfigMap
	for _, cm := range revisions {
		keep := true
		for _, d := range deleted {
			keep = keep && d.Name != cm.Name
		}
		if keep {
			kept = append(kept, cm)
		}
	}
	return kept
}

// A status is written once.
func TestStatusIsWrittenOnce(t *testing.T) {
	c := cluster(t, requesting("/issues"))
	testWrittenOnce(t, c, agents, "fixer")
	testWrittenOnce(t, c, models, "sonnet")
	testWrittenOnce(t, c, toolsets, "issues")
	testWrittenOnce(t, c, workflows, "release")
	var w v1alpha1.Workflow
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: gen.Namespace, Name: "release"}, &w); err != nil {
		t.Fatal(err)
	}
	if w.Status.Nodes != 1 || len(w.Status.Conditions) != 3 || w.Status.Conditions[0].Message != "1 node" || w.Status.ObservedGeneration != 2 {
		t.Errorf("the status of Workflow release is %+v", w.Status)
	}
}

func testWrittenOnce[T client.Object, R any](t *testing.T, c client.Client, k kind[T, R], name string) {
	t.Helper()
	key := client.ObjectKey{Namespace: gen.Namespace, Name: name}
	before := k.newObject()
	if err := c.Get(t.Context(), key, before); err != nil {
		t.Fatal(err)
	}
	versions := map[string]bool{}
	for year := range 3 {
		now := func() time.Time { return gen.Noon.AddDate(year, 0, 0) }
		if _, err := newReconciler(k, testEnvironment(c, now)).Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		is := k.newObject()
		if err := c.Get(t.Context(), key, is); err != nil {
			t.Fatal(err)
		}
		versions[is.GetResourceVersion()] = true
	}
	if len(versions) != 1 || versions[before.GetResourceVersion()] {
		t.Errorf("the status of %s %s was not written once: resource versions %v, before %s", k.name, name, versions, before.GetResourceVersion())
	}
}
