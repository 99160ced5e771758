package workflow

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gc"
	"github.com/deckhand-dev/deckhand/internal/gen"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// release is a Workflow of one node, fix, and one that reads it.
func release(mods ...func(*v1alpha1.Workflow)) *v1alpha1.Workflow {
	w := &v1alpha1.Workflow{
		ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "release", UID: "workflow-uid", Generation: 2},
		Spec: v1alpha1.WorkflowSpec{Nodes: []v1alpha1.Node{
			{Name: "fix", Agent: "fixer", Prompt: "Fix it."},
			{Name: "tell", Agent: "fixer", Prompt: "Tell ${{ nodes.fix.text }}."},
		}},
	}
	for _, mod := range mods {
		mod(w)
	}
	return w
}

func otherwise(w *v1alpha1.Workflow) { w.Spec.Nodes[0].Prompt = "Fix it otherwise." }

// reaching is a Workflow with what it may reach: the Agent fixer.
func reaching(w *v1alpha1.Workflow) world {
	fixer := gen.Agent()
	return world{workflow: w, now: gen.Noon, versions: gc.Revisions{Unused: map[string]bool{}}, objects: workflow.Objects{
		Workflows: map[string]*v1alpha1.Workflow{w.Name: w},
		Agents:    map[string]*v1alpha1.Agent{"fixer": fixer},
		Reach:     map[string]snapshot.Objects{"fixer": gen.Objects()},
	}}
}

// version is a stored version of a Workflow, as old as said.
func version(t *testing.T, w *v1alpha1.Workflow, age time.Duration) corev1.ConfigMap {
	t.Helper()
	v, err := workflow.Of(w, reaching(w).objects)
	if err != nil {
		t.Fatal(err)
	}
	all := v.ConfigMaps(w.Namespace)
	cm := *all[len(all)-1]
	cm.CreationTimestamp = metav1.NewTime(gen.Noon.Add(-age))
	return cm
}

func TestReady(t *testing.T) {
	long := strings.Repeat("x", 5000)
	consent := v1alpha1.Node{Name: "consent", Approval: &v1alpha1.ApprovalNode{Message: "May it?"}}
	gone := reaching(release())
	gone.objects.Agents = nil
	cases := map[string]struct {
		world world
		want  string
	}{
		"everything is there":            {reaching(release()), "True Ready: 2 nodes"},
		"one node":                       {reaching(release(func(w *v1alpha1.Workflow) { w.Spec.Nodes = w.Spec.Nodes[:1] })), "True Ready: 1 node"},
		"an approval holds nothing back": {reaching(release(func(w *v1alpha1.Workflow) { w.Spec.Nodes = append(w.Spec.Nodes, consent) })), "True Ready: 3 nodes; no node waits for the approval consent: add it to dependsOn of the nodes that must wait for it"},
		"{{ }} in a prompt": {
			reaching(release(func(w *v1alpha1.Workflow) { w.Spec.Nodes[0].Prompt = "Fix {{ parameters.file }}." })),
			"True Ready: 2 nodes; node fix: prompt: column 5: {{ parameters.file }} is sent to the model as text; write ${{ input.file }}",
		},
		"the output of a task, and $() in a message": {
			reaching(release(func(w *v1alpha1.Workflow) {
				w.Spec.Nodes[1].Prompt = "Tell\n${{ nodes.fix.text }} $(tasks.fix.results.x)"
				w.Spec.Nodes = append(w.Spec.Nodes, v1alpha1.Node{Name: "consent", DependsOn: []string{"tell"}, Approval: &v1alpha1.ApprovalNode{Message: "May it? $(params.x)"}})
			})),
			"True Ready: 3 nodes; node tell: prompt: line 2, column 23: $(tasks.fix.results.x) is sent to the model as text; write ${{ nodes.fix.output }}; node consent: approval.message: column 9: $(params.x) is shown as text; write ${{ input.x }}",
		},
		"an Agent is not there":             {gone, `False AgentNotFound: node fix: Agent "fixer" not found`},
		"an expression does not compile":    {reaching(release(func(w *v1alpha1.Workflow) { w.Spec.Nodes[1].When = "nodes.fix.output" })), "False ExpressionInvalid: node tell: when: column"},
		"what is wrong is told in a few KB": {reaching(release(func(w *v1alpha1.Workflow) { w.Spec.Nodes[1].DependsOn = []string{long} })), "False GraphInvalid: node tell: dependsOn names \"xxx"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := decide(tc.world)
			got := fmt.Sprintf("%s %s: %s", p.ready.Status, p.ready.Reason, p.ready.Message)
			if !strings.HasPrefix(got, tc.want) || len(got) > maxMessage+100 || p.nodes == 0 {
				t.Errorf("Ready is %s, with %d nodes; want %s", got, p.nodes, tc.want)
			}
		})
	}
}

func TestWhichVersionsGo(t *testing.T) {
	current, old := version(t, release(), time.Hour), version(t, release(otherwise), time.Hour)
	young := version(t, release(otherwise), 20*time.Second)
	cases := map[string]struct {
		workflow *v1alpha1.Workflow
		version  corev1.ConfigMap
		unused   bool
		removed  bool
		wake     time.Duration
	}{
		"the current one stays":                     {release(), current, true, false, 0},
		"an old one that somebody needs stays":      {release(), old, false, false, 0},
		"an old one that nobody needs goes":         {release(), old, true, true, 0},
		"a young one may be about to be claimed":    {release(), young, true, false, 40 * time.Second},
		"all of a deleted one that are unused go":   {nil, current, true, true, 0},
		"those of it that somebody needs stay":      {nil, current, false, false, 0},
		"of one that is not Ready all are old ones": {release(func(w *v1alpha1.Workflow) { w.Spec.Nodes[0].When = "1" }), current, true, true, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := reaching(release())
			w.workflow = tc.workflow
			w.versions.Stored, w.versions.Unused[tc.version.Name] = []corev1.ConfigMap{tc.version}, tc.unused
			p := decide(w)
			if removed := len(p.remove) == 1; removed != tc.removed || p.wake != tc.wake {
				t.Errorf("removed %t, wake %s; want %t, %s", removed, p.wake, tc.removed, tc.wake)
			}
			if gone := tc.workflow == nil; gone != (p.ready == nil) {
				t.Errorf("Ready is %v", p.ready)
			}
		})
	}
}

// Whatever is stored, after acting there is nothing left to do but to wait for
// what is young.
func TestEveryWorkflowSettles(t *testing.T) {
	for mask := range 1 << 6 {
		w := reaching(release())
		if mask&1 != 0 {
			w.workflow = nil
		}
		for i := range 5 {
			cm := version(t, release(func(w *v1alpha1.Workflow) { w.Spec.Nodes[0].Prompt = fmt.Sprint(i) }), time.Duration(i)*30*time.Second)
			w.versions.Stored = append(w.versions.Stored, cm)
			w.versions.Unused[cm.Name] = mask&(2<<i) != 0
		}
		for range 10 {
			p := decide(w)
			w.versions.Stored = without(w.versions.Stored, p.remove)
			w.now = w.now.Add(p.wake)
		}
		last := decide(w)
		if len(last.remove) > 0 || last.wake > 0 {
			t.Errorf("world %06b does not settle: %d to remove, wake in %s", mask, len(last.remove), last.wake)
		}
		if diff := cmp.Diff(last, decide(w), cmp.AllowUnexported(plan{})); diff != "" {
			t.Errorf("deciding twice differs:\n%s", diff)
		}
	}
}

func without(versions, gone []corev1.ConfigMap) []corev1.ConfigMap {
	var kept []corev1.ConfigMap
	for _, cm := range versions {
		keep := true
		for _, g := range gone {
			keep = keep && g.Name != cm.Name
		}
		if keep {
			kept = append(kept, cm)
		}
	}
	return kept
}
