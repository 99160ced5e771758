package ready

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
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

func otherPrompt(w *v1alpha1.Workflow) { w.Spec.Nodes[0].Prompt = "Fix it otherwise." }

// objectsOf returns a Workflow and the Agent fixer, to which it refers.
func objectsOf(w *v1alpha1.Workflow) workflow.Objects {
	return workflow.Objects{
		Workflows:    map[string]*v1alpha1.Workflow{w.Name: w},
		Agents:       map[string]*v1alpha1.Agent{"fixer": gen.Agent()},
		AgentObjects: map[string]snapshot.Objects{"fixer": gen.Objects()},
	}
}

// workflowRevision returns a stored revision of a Workflow of an age.
func workflowRevision(t *testing.T, w *v1alpha1.Workflow, age time.Duration) corev1.ConfigMap {
	t.Helper()
	v, err := workflow.Of(w, objectsOf(w))
	if err != nil {
		t.Fatal(err)
	}
	all := v.ConfigMaps(w.Namespace)
	cm := *all[len(all)-1]
	cm.CreationTimestamp = metav1.NewTime(gen.Noon.Add(-age))
	return cm
}

func TestCheckWorkflow(t *testing.T) {
	long := strings.Repeat("x", 5000)
	consent := v1alpha1.Node{Name: "consent", Approval: &v1alpha1.ApprovalNode{Message: "May it?"}}
	cases := map[string]struct {
		workflow *v1alpha1.Workflow
		missing  bool // the Agent
		want     string
	}{
		"everything is there":            {release(), false, "True Ready: 2 nodes"},
		"one node":                       {release(func(w *v1alpha1.Workflow) { w.Spec.Nodes = w.Spec.Nodes[:1] }), false, "True Ready: 1 node"},
		"an approval holds nothing back": {release(func(w *v1alpha1.Workflow) { w.Spec.Nodes = append(w.Spec.Nodes, consent) }), false, "True Ready: 3 nodes; no node waits for the approval consent: add it to dependsOn of the nodes that must wait for it"},
		"{{ }} in a prompt": {
			release(func(w *v1alpha1.Workflow) { w.Spec.Nodes[0].Prompt = "Fix {{ parameters.file }}." }), false,
			"True Ready: 2 nodes; node fix: prompt: column 5: {{ parameters.file }} is sent to the model as text; write ${{ input.file }}",
		},
		"the output of a task, and $() in a message": {
			release(func(w *v1alpha1.Workflow) {
				w.Spec.Nodes[1].Prompt = "Tell\n${{ nodes.fix.text }} $(tasks.fix.results.x)"
				w.Spec.Nodes = append(w.Spec.Nodes, v1alpha1.Node{Name: "consent", DependsOn: []string{"tell"}, Approval: &v1alpha1.ApprovalNode{Message: "May it? $(params.x)"}})
			}), false,
			"True Ready: 3 nodes; node tell: prompt: line 2, column 23: $(tasks.fix.results.x) is sent to the model as text; write ${{ nodes.fix.output }}; node consent: approval.message: column 9: $(params.x) is shown as text; write ${{ input.x }}",
		},
		"an Agent is not there":             {release(), true, `False NotFound: node fix: Agent "fixer" not found`},
		"an expression does not compile":    {release(func(w *v1alpha1.Workflow) { w.Spec.Nodes[1].When = "nodes.fix.output" }), false, "False Invalid: node tell: when: column"},
		"what is wrong is told in a few KB": {release(func(w *v1alpha1.Workflow) { w.Spec.Nodes[1].DependsOn = []string{long} }), false, "False Invalid: node tell: dependsOn names \"xxx"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := objectsOf(tc.workflow)
			if tc.missing {
				objects.Agents = nil
			}
			found := checkWorkflow(tc.workflow, objects)
			got := fmt.Sprintf("%s %s: %s", found.ready.Status, found.ready.Reason, found.ready.Message)
			if !strings.HasPrefix(got, tc.want) || len(got) > maxMessage+100 || found.nodes == 0 {
				t.Errorf("Ready is %s, with %d nodes; want %s", got, found.nodes, tc.want)
			}
		})
	}
}
