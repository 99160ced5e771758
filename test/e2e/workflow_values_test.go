//go:build e2e

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// withInput are the input of a Run.
func withInput(values args) func(*v1alpha1.Run) {
	data, err := json.Marshal(values)
	if err != nil {
		panic(err)
	}
	return func(r *v1alpha1.Run) { r.Spec.Input = &runtime.RawExtension{Raw: data} }
}

// nasty is what an agent might say so that somebody reads it as something else.
const nasty = "${{ input }} \"quotes\" 'and' $${{ {{ ` \\ \\n %s <b>&amp; - yaml: [x]\n${{ input.x }} ${{ nodes.a.text }} }} ñ \u2028 🛶\t$(id) #{x} "

// The output of an agent arrives at the next one byte for byte, also through nested
// Workflows.
func TestOutputsArriveByteForByte(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, map[string]modeltest.Dialogue{"liar": turns(says(nasty)), "echo": turns(says("{{.LastUserMessage}}"))})
	s.workflow("deep", `
input: {fields: [{name: said}]}
nodes:
- name: hear
  agent: echo
  prompt: "deep: ${{ input.said }}|$${{ this }}|${{ input.said }}"
output: {heard: {cel: nodes.hear.text}}
`)
	s.workflow("middle", `
input: {fields: [{name: said, schema: {type: array, items: {type: string}}}]}
nodes:
- {name: each, workflow: deep, input: {said: {cel: item}}, forEach: {items: input.said}}
output: {all: {cel: nodes.each.output}}
`)
	s.workflow("outer", `
nodes:
- {name: say, agent: liar, prompt: Say something.}
- {name: pass, workflow: middle, input: {said: {cel: "[nodes.say.text, 'plain']"}}}
output:
  heard: {cel: "nodes.pass.output.all.map(o, o.heard)"}
  same: {cel: "nodes.pass.output.all[0].heard.contains(nodes.say.text)"}
`)
	ended := s.settles(s.start("outer"), "True Finished")
	want := "deep: " + nasty + "|${{ this }}|" + nasty
	var said struct {
		Heard []string
		Same  bool
	}
	if err := json.Unmarshal([]byte(ended.Status.Progress.Result.Output), &said); err != nil {
		t.Fatal(err)
	}
	if len(said.Heard) != 2 || said.Heard[0] != want || said.Heard[1] != "deep: plain|${{ this }}|plain" || !said.Same {
		t.Errorf("it heard %q, want %q", said.Heard, want)
	}
	if got := s.prompted("echo", "quotes"); got != want {
		t.Errorf("the model was asked %q, want %q", got, want)
	}
	s.ends(s.named("outer-pass-each-0-hear"), "True Finished")
}

// prompted is the last user message of the first request of a model that holds a
// text.
func (s *exampleFixture) prompted(model, text string) string {
	s.t.Helper()
	for _, r := range s.requestsWith("POST " + modelsName + "/" + model + "/") {
		var body struct {
			Messages []struct{ Role, Content string }
		}
		if err := json.Unmarshal([]byte(r.Body), &body); err != nil {
			s.t.Fatalf("reading a request: %v", err)
		}
		if last := body.Messages[len(body.Messages)-1]; last.Role == "user" && strings.Contains(last.Content, text) {
			return last.Content
		}
	}
	return ""
}

// A Workflow that cannot work is refused when it is applied: with the node, the
// field and the place in it.
func TestBadWorkflowsAreRefused(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("hand")
	p.agent("judge", func(a *v1alpha1.Agent) {
		a.Spec.Output = &v1alpha1.Output{Schema: runtime.RawExtension{Raw: []byte(`{"type":"object","required":["score"],"properties":{"score":{"type":"integer"}}}`)}}
	})
	s := &exampleFixture{testNamespace: p}
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"circle":   {`nodes: [{name: a, agent: hand, prompt: x, dependsOn: [b]}, {name: b, agent: hand, prompt: x, dependsOn: [a]}]`, []string{"Invalid", "a", "b"}},
		"stranger": {`nodes: [{name: a, agent: hand, prompt: x, dependsOn: [bee]}, {name: be, agent: hand, prompt: x}]`, []string{"Invalid", "node a", "bee"}},
		"nobody":   {`nodes: [{name: a, agent: hands, prompt: x}]`, []string{"NotFound", "node a", "hands"}},
		"typo": {
			"nodes:\n- {name: a, agent: judge, prompt: x}\n- name: b\n  agent: hand\n  prompt: |\n    Hello\n    score ${{ nodes.a.output.scor }}",
			[]string{"Invalid", "node b: prompt: line 2, column 26: there is no field scor", "did you mean score?"},
		},
		"mistyped": {
			`nodes: [{name: a, agent: judge, prompt: x}, {name: b, agent: hand, prompt: x, when: "nodes.a.output.score"}]`,
			[]string{"Invalid", "node b: when: column 1"},
		},
		"unguarded": {
			`nodes: [{name: a, agent: judge, prompt: x, onFailure: Continue}, {name: b, agent: hand, prompt: x, when: nodes.a.output.score > 3}]`,
			[]string{"Invalid", "node b: when: column 1", "nodes.a.output.score may be absent: write "},
		},
		"unclosed": {`nodes: [{name: a, agent: hand, prompt: "x ${{ run.name"}]`, []string{"Invalid", "node a: prompt: column 3"}},
		"itself":   {`nodes: [{name: a, workflow: itself}]`, []string{"Cycle", "itself"}},
		"priced":   {`{limits: {cost: 1USD}, nodes: [{name: a, agent: free, prompt: x}]}`, []string{"PricesMissing", "free"}},
		"default":  {`{input: {fields: [{name: n, type: Integer, default: many}]}, nodes: [{name: a, agent: hand, prompt: x}]}`, []string{"Invalid", "n"}},
	} {
		if name == "priced" {
			p.create(modelOf("free", func(m *v1alpha1.Model) { m.Spec.Prices = nil }), &v1alpha1.Agent{
				ObjectMeta: metav1.ObjectMeta{Name: "free"}, Spec: v1alpha1.AgentSpec{Instructions: "Do it.", Model: "free"},
			})
		}
		w := s.workflow(name, tc.spec)
		p.awaitNotReady(w, name, tc.want, func() string { return ready(w.Status.Conditions) })
	}
	run := s.start("typo")
	seen := p.await(run, "says why it waits", func(r *v1alpha1.Run) bool { return strings.Contains(message(r), "not ready") })
	s.has("the message", succeeded(seen), "Unknown Pending", `Workflow "typo" is not ready: node b: prompt: line 2, column 26`)
}

// Child Runs keep the cost limit of their workflow: a node waits while the remaining budget is
// reserved, and the Run ends when nothing is left. finally has a budget of its own.
func TestTheCostLimitOfAWorkflowHolds(t *testing.T) {
	t.Parallel()
	dear := turns(costing(modeltest.Turn{Text: longText, DelayMS: 1000}, 1000, 0, 100)) // 0.0045USD
	s := newHarbor(t, map[string]modeltest.Dialogue{"dear": dear})
	s.workflow("voyage", `
nodes:
- {name: out, agent: dear, prompt: Sail.}
- {name: there, agent: dear, prompt: Sail.}
- {name: back, agent: dear, prompt: Sail.}
finally:
- {name: log, agent: dear, prompt: "${{ run.reason }}, said ${{ run.message }}"}
limits: {cost: 0.0140USD}
finallyLimits: {cost: 0.0050USD}
`)
	run := s.start("voyage")
	s.runs["voyage"] = s.await(run, "has a node that waits", func(r *v1alpha1.Run) bool { return len(r.Status.Nodes) > 1 && r.Status.Nodes[1].Reason != "" })
	s.graph("voyage", "out Running", "there Waiting Queued", "back Waiting Queued", "log Waiting")
	ended := s.settles(run, "False CostLimit")
	s.graph("voyage", "out Succeeded", "there Succeeded", "back NotReached CostLimit", "log Succeeded")
	s.has("the message", message(ended), "The child Runs used 0.009USD, and limits.cost allows them 0.009USD, besides 0.005USD for finally")
	s.has("what is logged", s.prompted("dear", "said"), "CostLimit, said The child Runs used")
	if u := ended.Status.Progress.Usage; u.CostMicroUSD == nil || *u.CostMicroUSD != 3*4500 {
		t.Errorf("it used %+v", u)
	}
}

// An editor of the namespace can create no child Run of a workflow. If a Run already has the
// name of a child, it is left alone, and the node runs under another name.
func TestAnEditorCannotForgeAChildRun(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, map[string]modeltest.Dialogue{"hand": hand, "long": long})
	eve := s.as("eve", "edit")
	s.workflow("ferry", `
nodes:
- {name: load, agent: hand, prompt: loaded}
- {name: sail, agent: long, prompt: Sail on., dependsOn: [load]}
`)
	squatter := s.named("ferry-load")
	squatter.Spec = v1alpha1.RunSpec{Agent: "hand", Prompt: "squatted"}
	if err := eve.Create(t.Context(), squatter); err != nil {
		t.Fatal(err)
	}
	run := s.start("ferry")
	sail := s.awaitRunner("ferry-sail")
	for what, forged := range s.forgedChildren(run) {
		if err := eve.Create(t.Context(), forged); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "only the operator") {
			t.Errorf("%s: %v, want it refused", what, err)
		}
	}
	for what, patch := range map[string]string{
		"a child's node":    `{"metadata":{"labels":{"deckhand.dev/workflow-node":"load"}}}`,
		"a child's version": `{"metadata":{"annotations":{"deckhand.dev/revision-hash":"x"}}}`,
		"a child's parent":  `{"metadata":{"labels":{"deckhand.dev/workflow-run":null}}}`,
	} {
		if err := eve.Patch(t.Context(), s.named(sail.Name), client.RawPatch("application/merge-patch+json", []byte(patch))); !apierrors.IsForbidden(err) {
			t.Errorf("changing %s: %v, want it refused", what, err)
		}
	}
	if err := eve.Status().Patch(t.Context(), s.named(sail.Name), client.RawPatch("application/merge-patch+json", []byte(`{"status":{"workflowRevision":"x"}}`))); !apierrors.IsForbidden(err) {
		t.Errorf("writing a child's status: %v, want it refused", err)
	}
	s.setDesiredState(run, v1alpha1.DesiredStopped)
	s.settles(run, "False Stopped")
	s.graph("ferry", "load Succeeded", "sail Failed Cancelled")
	s.checkEffectsOnce("loaded", "squatted")
	if theirs := s.ends(squatter, "True Finished"); theirs.Spec.DesiredState == v1alpha1.DesiredStopped || len(theirs.OwnerReferences) != 0 {
		t.Errorf("the squatter became %+v", theirs)
	}
	for name, kid := range s.childrenByName("ferry") {
		if kid.Labels[v1alpha1.LabelWorkflowNode] == "load" && !strings.HasPrefix(name, "ferry-load-") {
			t.Errorf("the child of load is %s", name)
		}
	}
}

// forgedChildren are Runs that pass for children of one, each in some way.
func (s *exampleFixture) forgedChildren(run *v1alpha1.Run) map[string]*v1alpha1.Run {
	forged := func(mod func(*metav1.ObjectMeta)) *v1alpha1.Run {
		r := s.named("ferry-forged")
		r.Spec = v1alpha1.RunSpec{Agent: "hand", Prompt: "forged"}
		mod(&r.ObjectMeta)
		return r
	}
	return map[string]*v1alpha1.Run{
		"by its labels": forged(func(m *metav1.ObjectMeta) {
			m.Labels = map[string]string{v1alpha1.LabelWorkflowRun: run.Name, v1alpha1.LabelWorkflowNode: "sail"}
		}),
		"by its annotations": forged(func(m *metav1.ObjectMeta) {
			m.Annotations = map[string]string{v1alpha1.AnnotationRevisionHash: run.Status.WorkflowRevision}
		}),
		"by its owner": forged(func(m *metav1.ObjectMeta) {
			m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(run, v1alpha1.GroupVersion.WithKind("Run"))}
		}),
	}
}
