package controller_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/controller/ready"
	"github.com/deckhand-dev/deckhand/internal/revision/refs/cached"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// reconcileWorkflow reconciles the Workflow of that name once.
func (b *fixture) reconcileWorkflow(name string) {
	b.t.Helper()
	_, err := ready.Reconcilers(b.indexed(), b.events, func() time.Time { return b.now })["Workflow"].Reconcile(b.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: b.namespace, Name: name}})
	if err != nil {
		b.t.Fatalf("reconciling the Workflow: %v", err)
	}
}

func (b *fixture) workflow(name string) *v1alpha1.Workflow {
	b.t.Helper()
	var w v1alpha1.Workflow
	if err := b.Admin.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, &w); err != nil {
		b.t.Fatal(err)
	}
	return &w
}

func (b *fixture) newWorkflow(name string, nodes ...v1alpha1.Node) {
	b.t.Helper()
	b.Create(b.t, &v1alpha1.Workflow{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}, Spec: v1alpha1.WorkflowSpec{Nodes: nodes}})
}

func TestWorkflowSaysWhetherItIsReady(t *testing.T) {
	b := newFixture(t)
	b.newWorkflow("release",
		v1alpha1.Node{Name: "fix", Agent: "fixer", Prompt: "Fix it."},
		v1alpha1.Node{Name: "check", Agent: "helper", Prompt: "Check ${{ nodes.fix.text }}."},
	)
	expect := func(want, says string) {
		t.Helper()
		b.reconcileWorkflow("release")
		w := b.workflow("release")
		c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionReady)
		if got := readyOf(w.Status.Conditions); got != want || !strings.Contains(c.Message, says) || w.Status.Nodes != 2 || w.Status.ObservedGeneration != w.Generation {
			t.Errorf("Ready is %s: %q with %d nodes, want %s: %q", got, c.Message, w.Status.Nodes, want, says)
		}
	}
	expect("False NotFound", "node check")
	b.Create(t, gen.Agent(func(a *v1alpha1.Agent) { a.Name, a.Namespace, a.UID = "helper", b.namespace, "" }))
	expect("True Ready", "2 nodes")
	before := b.workflow("release").ResourceVersion
	b.reconcileWorkflow("release")
	if after := b.workflow("release").ResourceVersion; after != before {
		t.Error("a second look at the same wrote again")
	}
	w := b.workflow("release")
	w.Spec.Nodes[1].When = "nodes.fix.output.score > 3"
	if err := b.Admin.Update(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	expect("False Invalid", "node check: when: column")
}

// store keeps the current version of a Workflow, as a Run of it does.
func (b *fixture) store(name string) *workflow.Revision {
	b.t.Helper()
	w := b.workflow(name)
	objects, err := workflow.From(b.t.Context(), cached.Reader(b.Admin), w)
	if err != nil {
		b.t.Fatal(err)
	}
	v, err := workflow.Of(w, objects)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, cm := range v.ConfigMaps(b.namespace) {
		if err := b.Admin.Create(b.t.Context(), cm); client.IgnoreAlreadyExists(err) != nil {
			b.t.Fatal(err)
		}
	}
	return v
}

// A version stays while an unfinished Run, or another version that is needed,
// names it; then it goes, and what it needed after it.
func TestVersionsOfWorkflowsGoWhenNothingNeedsThem(t *testing.T) {
	b := newFixture(t, func(r *v1alpha1.Run) {
		r.Spec.Agent, r.Spec.Prompt, r.Spec.Workflow = "", "", "outer"
	})
	b.newWorkflow("inner", v1alpha1.Node{Name: "fix", Agent: "fixer", Prompt: "Fix it."})
	b.newWorkflow("outer", v1alpha1.Node{Name: "sub", Workflow: "inner"})
	v := b.store("outer")
	if n := b.versions(); n != 3 {
		t.Fatalf("%d versions are stored, want those of outer, inner and fixer", n)
	}
	b.patchStatus(map[string]any{"workflowRevision": v.Hash})
	b.now = b.now.Add(time.Hour)
	for _, name := range []string{"inner", "outer"} {
		w := b.workflow(name)
		w.Spec.Description = "Otherwise."
		if err := b.Admin.Update(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	b.update(func(a *v1alpha1.Agent) { a.Spec.Instructions = "Do it otherwise." })
	sweep := func(want ...string) {
		t.Helper()
		b.reconcileAgent()
		b.reconcileWorkflow("inner")
		b.reconcileWorkflow("outer")
		var list corev1.ConfigMapList
		if err := b.Admin.List(t.Context(), &list, client.InNamespace(b.namespace), client.HasLabels{v1alpha1.LabelRevision}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range list.Items {
			got = append(got, list.Items[i].Labels[v1alpha1.LabelWorkflow]+list.Items[i].Labels[v1alpha1.LabelAgent])
		}
		if len(got) != len(want) || !containsAll(got, want) {
			t.Errorf("versions are %v, want %v", got, want)
		}
	}
	sweep("outer", "inner", "fixer")
	b.patchStatus(map[string]any{"workflowRevision": v.Hash, "completionTime": metav1.NewTime(b.now)})
	sweep("inner", "fixer")
	sweep("fixer")
	sweep()
}

func containsAll(in, want []string) bool {
	all := strings.Join(in, " ") + " "
	for _, w := range want {
		if !strings.Contains(all, w+" ") {
			return false
		}
	}
	return true
}

func (b *fixture) patchStatus(status map[string]any) {
	b.t.Helper()
	data, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.Admin.Status().Patch(b.t.Context(), b.get(), client.RawPatch(types.MergePatchType, data)); err != nil {
		b.t.Fatal(err)
	}
}
