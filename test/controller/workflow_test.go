package controller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/controller/workflowrun"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// A workflowFixture is the Run of a Workflow with its operator, on a real API server. The test
// does the work of the children.
type workflowFixture struct {
	*fixture
	reconciler *workflowrun.Reconciler
}

// newWorkflowFixture is the Run x of the Workflow release, whose spec is text. Its Agent is
// fixer.
func newWorkflowFixture(t *testing.T, text string, mods ...func(*v1alpha1.Run)) *workflowFixture {
	t.Helper()
	f := &workflowFixture{fixture: newFixture(t, append([]func(*v1alpha1.Run){func(r *v1alpha1.Run) {
		r.Spec.Agent, r.Spec.Prompt, r.Spec.Workflow = "", "", "release"
	}}, mods...)...)}
	w := &v1alpha1.Workflow{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "release"}}
	if err := yaml.UnmarshalStrict([]byte(text), &w.Spec); err != nil {
		t.Fatal(err)
	}
	f.Create(t, w)
	f.restart()
	return f
}

// restart is an operator that remembers nothing.
func (f *workflowFixture) restart() {
	c := interceptor.NewClient(f.operator, f.faults)
	f.reconciler = workflowrun.New(c, c, f.events, workflowrun.Options{Guard: f.fixture, Now: func() time.Time { return f.now }})
}

func (f *workflowFixture) once() error {
	f.t.Helper()
	_, err := f.reconciler.Reconcile(f.t.Context(), f.get())
	return err
}

// rest reconciles until the Run rests: its status does not change, and no child is
// made.
func (f *workflowFixture) rest() *v1alpha1.Run {
	f.t.Helper()
	for range 40 {
		before, made := f.get(), len(f.children())
		if err := f.once(); err != nil {
			f.t.Fatalf("reconciling: %v", err)
		}
		if now := f.get(); now.ResourceVersion == before.ResourceVersion && len(f.children()) == made {
			return now
		}
	}
	f.t.Fatal("the Run does not come to rest")
	return nil
}

// children are those that carry the label, by name.
func (f *workflowFixture) children() []v1alpha1.Run {
	f.t.Helper()
	var list v1alpha1.RunList
	if err := f.Admin.List(f.t.Context(), &list, client.InNamespace(f.namespace), client.MatchingLabels{v1alpha1.LabelWorkflowRun: "x"}); err != nil {
		f.t.Fatal(err)
	}
	return list.Items
}

func (f *workflowFixture) child(name string) *v1alpha1.Run {
	f.t.Helper()
	var out v1alpha1.Run
	if err := f.Admin.Get(f.t.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, &out); err != nil {
		f.t.Fatalf("getting Run %s: %v", name, err)
	}
	return &out
}

// ends gives a child an outcome, and what it used.
func (f *workflowFixture) ends(c *v1alpha1.Run, status metav1.ConditionStatus, reason string) {
	f.t.Helper()
	cost := int64(20)
	c.Status.Progress = &v1alpha1.RunProgress{
		Counts: v1alpha1.Counts{Steps: 2, ModelCalls: 2, ToolCalls: 1},
		Usage:  v1alpha1.Usage{InputTokens: 9, OutputTokens: 1, TotalTokens: 10, CostMicroUSD: &cost, Cost: "0.00002USD", DurationSeconds: 3},
		Result: &v1alpha1.Result{Committed: true, Reason: reason, Text: "I am done."},
	}
	runstatus.Outcome{Status: status, Reason: reason, Message: "It ended."}.WriteStatus(&c.Status, c, f.now)
	if err := f.Admin.Status().Update(f.t.Context(), c); err != nil {
		f.t.Fatalf("updating Run %s: %v", c.Name, err)
	}
}

func (f *workflowFixture) node(name string) v1alpha1.NodeStatus {
	f.t.Helper()
	nodes := f.get().Status.Nodes
	i := slices.IndexFunc(nodes, func(n v1alpha1.NodeStatus) bool { return n.Name == name })
	if i < 0 {
		f.t.Fatalf("there is no node %s in %v", name, nodes)
	}
	return nodes[i]
}

const (
	well  = metav1.ConditionTrue
	badly = metav1.ConditionFalse

	twoNodes = `
nodes:
- {name: a, agent: fixer, prompt: "Begin."}
- {name: b, agent: fixer, prompt: "After ${{ nodes.a.text }}"}
`
)

// Fault F2: 500 at once, half of them fail, and finally runs once.
func TestFanOutOfFiveHundredHalfFailing(t *testing.T) {
	if testing.Short() {
		t.Skip("smaller workflows run under the race detector")
	}
	f := newWorkflowFixture(t, `
input: {fields: [{name: files, type: List}]}
nodes:
- name: look
  agent: fixer
  prompt: "Look at ${{ item }}."
  onFailure: Continue
  forEach: {items: input.files, maxParallel: 500}
finally:
- {name: tell, agent: fixer, prompt: "${{ nodes.look.counts.succeeded }} of ${{ nodes.look.counts.total }} are well."}
`, func(r *v1alpha1.Run) {
		list := make([]string, 500)
		for i := range list {
			list[i] = "f" + strconv.Itoa(i)
		}
		raw, _ := json.Marshal(map[string]any{"files": list})
		r.Spec.Input = &runtime.RawExtension{Raw: raw}
	})
	f.rest()
	all := f.children()
	if len(all) != 500 {
		t.Fatalf("there are %d children", len(all))
	}
	for i := range all {
		if n, _ := strconv.Atoi(all[i].Labels[v1alpha1.LabelItemIndex]); n%2 == 0 {
			f.ends(&all[i], well, v1alpha1.ReasonFinished)
		} else {
			f.ends(&all[i], badly, v1alpha1.ReasonStepLimit)
		}
	}
	f.restart()
	f.rest()
	if got, want := f.child("x-tell").Spec.Prompt, "250 of 500 are well."; got != want {
		t.Errorf("finally is told %q, want %q", got, want)
	}
	f.ends(f.child("x-tell"), well, v1alpha1.ReasonFinished)
	f.rest()
	f.expect("True Finished")
	if c := *f.node("look").Counts; c != (v1alpha1.NodeCounts{Total: 500, Started: 500, Succeeded: 250, Failed: 250}) {
		t.Errorf("the counts are %+v", c)
	}
	p := f.get().Status.Progress
	if p.Usage.TotalTokens != 5010 || *p.Usage.CostMicroUSD != 10020 || p.Usage.Cost != "0.01002USD" || p.Counts.Steps != 1002 || p.Usage.DurationSeconds != 1503 {
		t.Errorf("the sums are %+v %+v", p.Counts, p.Usage)
	}
	if n := len(f.children()); n != 501 {
		t.Errorf("there are %d children in the end", n)
	}
}

// Fault F1: the operator dies between the child and the status.
func TestChildIsMadeOnceWhenTheOperatorDies(t *testing.T) {
	f := newWorkflowFixture(t, twoNodes)
	if err := f.once(); err != nil { // it begins
		t.Fatal(err)
	}
	failOnce(f.fixture, apierrors.NewInternalError(context.DeadlineExceeded))
	f.restart()
	if err := f.once(); err == nil {
		t.Fatal("the status could be written")
	}
	made := f.child("x-a")
	f.restart()
	f.rest()
	if all := f.children(); len(all) != 1 || all[0].UID != made.UID {
		t.Errorf("the children are %d", len(all))
	}
	if c := f.node("a").Counts; c == nil || c.Started != 1 {
		t.Errorf("recorded is %+v", c)
	}
}

// An old copy of the Run makes nothing: what it does not know of may be gone since.
func TestStaleRunMakesNothing(t *testing.T) {
	f := newWorkflowFixture(t, twoNodes)
	if err := f.once(); err != nil {
		t.Fatal(err)
	}
	old := f.get()
	f.rest()
	if err := f.Admin.Delete(t.Context(), f.child("x-a")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.reconciler.Reconcile(t.Context(), old); !apierrors.IsConflict(err) {
		t.Errorf("reconciling an old copy: %v, want a conflict", err)
	}
	f.rest()
	f.expect("False NodeFailed")
	if n := f.node("a"); n.Reason != v1alpha1.NodeReasonLost || len(f.children()) != 0 {
		t.Errorf("node a is %+v, and there are %d children", n, len(f.children()))
	}
}

func TestChildIsWhatItsNodeSays(t *testing.T) {
	f := newWorkflowFixture(t, `
limits: {tokens: 5M, cost: 3USD}
nodes:
- {name: a, agent: fixer, prompt: "Begin.", maxRetries: 2, limits: {steps: 7, tokens: 100k}}
`, func(r *v1alpha1.Run) {
		r.Spec.User = "ann"
		r.Labels = map[string]string{
			"kueue.x-k8s.io/queue-name":        "night",
			"team":                             "blue",
			"app.kubernetes.io/instance":       "argo",
			"kustomize.toolkit.fluxcd.io/name": "apps",
		}
	})
	f.rest()
	c := f.child("x-a")
	want := map[string]string{"kueue.x-k8s.io/queue-name": "night", "team": "blue", v1alpha1.LabelWorkflowRun: "x", v1alpha1.LabelWorkflowNode: "a"}
	if fmt.Sprint(c.Labels) != fmt.Sprint(want) {
		t.Errorf("the labels are %v, want %v", c.Labels, want)
	}
	if l := c.Spec.Limits; l == nil || *l.Steps != 7 || *l.Tokens != "100000" || *l.Cost != "3.00USD" {
		t.Errorf("the limits are %s", jsonOf(t, c.Spec.Limits))
	}
	if c.Spec.User != "ann" || *c.Spec.MaxRetries != 2 || c.Annotations[v1alpha1.AnnotationRevisionHash] == "" || !metav1.IsControlledBy(c, f.get()) {
		t.Errorf("the child is %s", jsonOf(t, c))
	}
}

// The names of children may be taken, and Runs may say that they are children.
func TestForeignRunsAreNoChildren(t *testing.T) {
	f := newWorkflowFixture(t, twoNodes)
	f.Create(t, &v1alpha1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "x-a", Labels: map[string]string{v1alpha1.LabelWorkflowRun: "x", v1alpha1.LabelWorkflowNode: "a"}},
		Spec:       v1alpha1.RunSpec{Agent: "fixer", Prompt: "Something else."},
	})
	f.ends(f.child("x-a"), well, v1alpha1.ReasonFinished)
	f.rest()
	own := slices.DeleteFunc(f.children(), func(c v1alpha1.Run) bool { return !metav1.IsControlledBy(&c, f.run) })
	if len(own) != 1 || !strings.HasPrefix(own[0].Name, "x-a-") || own[0].Labels[v1alpha1.LabelWorkflowNode] != "a" {
		t.Fatalf("its own children are %d", len(own))
	}
	f.ends(&own[0], well, v1alpha1.ReasonFinished)
	f.rest()
	if got := f.child("x-b").Spec.Prompt; got != "After I am done." {
		t.Errorf("x-b is told %q", got)
	}
}

// Fault F3: what it began with stays, whatever becomes of the objects.
func TestRunKeepsTheVersionThatItBeganWith(t *testing.T) {
	f := newWorkflowFixture(t, twoNodes)
	f.rest()
	if err := f.Admin.Delete(t.Context(), f.workflow("release")); err != nil {
		t.Fatal(err)
	}
	f.update(func(a *v1alpha1.Agent) { a.Spec.Instructions = "You break what works." })
	f.ends(f.child("x-a"), well, v1alpha1.ReasonFinished)
	f.restart()
	f.rest()
	a, b := f.child("x-a"), f.child("x-b")
	if a.Annotations[v1alpha1.AnnotationRevisionHash] != b.Annotations[v1alpha1.AnnotationRevisionHash] {
		t.Error("its children run different versions of one Agent")
	}
}

func TestNoRoomForAChildIsWaitedFor(t *testing.T) {
	f := newWorkflowFixture(t, twoNodes)
	full := true
	f.faults.Create = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if _, is := o.(*v1alpha1.Run); is && full {
			return apierrors.NewForbidden(schema.GroupResource{Group: "deckhand.dev", Resource: "runs"}, o.GetName(), fmt.Errorf("exceeded quota: compute")) //nolint:err113 // the API server's words
		}
		return c.Create(ctx, o, opts...)
	}
	f.restart()
	f.rest()
	f.expect("Unknown QuotaExceeded")
	full = false
	f.rest()
	f.expect("Unknown Running")
}

func TestApprovalIsAskedAndAnswered(t *testing.T) {
	f := newWorkflowFixture(t, `
nodes:
- name: gate
  approval:
    message: "Ship it?"
    input: {schema: {type: object, properties: {env: {type: string}}, required: [env]}}
- {name: ship, agent: fixer, prompt: "Ship to ${{ nodes.gate.output.input.env }}, as ${{ nodes.gate.output.by }} said.", dependsOn: [gate]}
`)
	f.rest()
	f.expect("Unknown AwaitingApproval")
	asked := f.get().Status.Progress.Pending[0]
	f.createDecision("x.approval-gate", v1alpha1.DecisionSpec{Request: asked.ID, Type: v1alpha1.DecisionApprove, Value: `{"env":"staging"}`})
	f.reconcileDecision("x.approval-gate", nil)
	f.rest()
	if got, want := f.child("x-ship").Spec.Prompt, "Ship to staging, as admin said."; got != want {
		t.Errorf("x-ship is told %q, want %q", got, want)
	}
	if d := f.reconcileDecision("x.approval-gate", nil); !strings.HasPrefix(applied(d), "True") {
		t.Errorf("the Decision is %s", applied(d))
	}
	if err := f.Admin.Delete(t.Context(), f.reconcileDecision("x.approval-gate", nil)); err != nil {
		t.Fatal(err)
	}
	f.rest()
	f.expect("False DecisionMismatch")
	if c := f.child("x-ship"); c.Spec.DesiredState != v1alpha1.DesiredStopped {
		t.Errorf("the child that it left behind is to be %s", c.Spec.DesiredState)
	}
}

func TestStoppingReachesChildren(t *testing.T) {
	f := newWorkflowFixture(t, twoNodes)
	f.rest()
	r := f.get()
	r.Spec.DesiredState = v1alpha1.DesiredPaused
	if err := f.Admin.Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	f.rest()
	f.expect("Unknown Paused")
	if c := f.child("x-a"); c.Spec.DesiredState != v1alpha1.DesiredPaused {
		t.Errorf("the child is to be %s", c.Spec.DesiredState)
	}
	r = f.get()
	r.Spec.DesiredState = v1alpha1.DesiredStopped
	if err := f.Admin.Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	f.rest()
	c := f.child("x-a")
	if c.Spec.DesiredState != v1alpha1.DesiredStopped {
		t.Errorf("the child is to be %s", c.Spec.DesiredState)
	}
	f.ends(c, badly, v1alpha1.ReasonStopped)
	f.rest()
	f.expect("False Stopped")
}
