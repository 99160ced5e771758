package controller_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// A Run whose second node failed is retried on a real API server, with its schemas and its policies: the first node is
// not done again, which the controller of its child Run says, and the second is.
func TestAWorkflowIsRetried(t *testing.T) {
	f := newWorkflowFixture(t, twoNodes)
	f.rest()
	f.ends(f.child("x-a"), well, v1alpha1.ReasonFinished)
	f.rest()
	f.ends(f.child("x-b"), badly, v1alpha1.ReasonStuck)
	f.rest()
	f.expect("False NodeFailed")

	again := &v1alpha1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "again"},
		Spec:       v1alpha1.RunSpec{Workflow: "release", ContinueFrom: &v1alpha1.ContinueFrom{Run: "x"}},
	}
	f.Create(t, again)
	f.reconcileRetry(again)
	reused := f.child("again-a")
	if reused.Annotations[v1alpha1.AnnotationReuseOf] != string(f.child("x-a").UID) || reused.Spec.ContinueFrom == nil || reused.Spec.ContinueFrom.Run != "x-a" {
		t.Fatalf("again-a is %s", jsonOf(t, reused))
	}
	if _, err := f.fixture.reconciler().Reconcile(t.Context(), reused); err != nil {
		t.Fatal(err)
	}
	reused = f.child("again-a")
	if o := runstatus.OutcomeOf(reused.Status); o.Status != well || o.Reason != v1alpha1.ReasonReused || reused.Status.Progress.Result.Text != "I am done." || reused.Status.Progress.Usage.TotalTokens != 0 {
		t.Fatalf("again-a ended with %s", jsonOf(t, reused.Status))
	}
	f.reconcileRetry(again)
	b := f.child("again-b")
	if b.Spec.Prompt != "After I am done." || b.Spec.ContinueFrom != nil {
		t.Errorf("again-b is %s", jsonOf(t, b.Spec))
	}
	f.ends(b, well, v1alpha1.ReasonFinished)
	f.reconcileRetry(again)
	if o := runstatus.OutcomeOf(again.Status); o.Status != well || again.Status.Progress.Usage.TotalTokens != 10 || again.Status.ContinuedFrom == nil || again.Status.ContinuedFrom.TotalTokens != 20 {
		t.Errorf("the Run ended with %s", jsonOf(t, again.Status))
	}
}

// What a user approved is not asked again. The API server lets the operator make the retry an owner of the Decision, and
// when the Run that asked is deleted, the Decision stays and the retry goes on; without it, the retry ends.
func TestARetryReusesAnApproval(t *testing.T) {
	f := newWorkflowFixture(t, `
nodes:
- {name: gate, approval: {message: "Ship?"}}
- {name: ship, agent: fixer, prompt: "as ${{ nodes.gate.output.by }} said", dependsOn: [gate]}
`)
	f.rest()
	f.createDecision("x.approval-gate", v1alpha1.DecisionSpec{Request: "approval-gate", Type: v1alpha1.DecisionApprove})
	f.reconcileDecision("x.approval-gate", nil)
	f.rest()
	f.ends(f.child("x-ship"), badly, v1alpha1.ReasonStuck)
	f.rest()
	f.expect("False NodeFailed")
	f.reconcileDecision("x.approval-gate", nil)

	f.now = f.now.Add(time.Hour) // the API server, which does not have this clock, dated the Decision
	again := &v1alpha1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "again"},
		Spec:       v1alpha1.RunSpec{Workflow: "release", ContinueFrom: &v1alpha1.ContinueFrom{Run: "x"}},
	}
	f.Create(t, again)
	f.reconcileRetry(again)
	d := f.reconcileDecision("x.approval-gate", nil)
	if decided := again.Status.Progress.Decided; len(decided) != 1 || decided[0].Name != d.Name || len(again.Status.Progress.Pending) > 0 || !decisions.ProvesReuse(again, d, decided[0]) {
		t.Fatalf("the retry is %s, and the Decision is %s", jsonOf(t, again.Status), jsonOf(t, d))
	}
	if ship := f.child("again-ship"); ship.Spec.Prompt != "as admin said" {
		t.Errorf("again-ship is %s", jsonOf(t, ship.Spec))
	}
	withoutX := d.DeepCopy() // as the garbage collector leaves it
	withoutX.OwnerReferences = withoutX.OwnerReferences[1:]
	if err := f.Admin.Update(t.Context(), withoutX); err != nil {
		t.Fatal(err)
	}
	if f.reconcileRetry(again); runstatus.IsFinished(again) {
		t.Fatalf("without x the retry is %s", jsonOf(t, again.Status))
	}
	if err := f.Admin.Delete(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	f.reconcileRetry(again)
	if o := runstatus.OutcomeOf(again.Status); o.Reason != v1alpha1.ReasonDecisionMismatch {
		t.Errorf("without the Decision the retry is %s", jsonOf(t, again.Status))
	}
}

// reconcileRetry reconciles a Run until it rests, and reads it.
func (f *workflowFixture) reconcileRetry(run *v1alpha1.Run) {
	f.t.Helper()
	for range 5 {
		if err := f.Admin.Get(f.t.Context(), client.ObjectKeyFromObject(run), run); err != nil {
			f.t.Fatal(err)
		}
		if _, err := f.reconciler.Reconcile(f.t.Context(), run.DeepCopy()); err != nil {
			f.t.Fatal(err)
		}
	}
	if err := f.Admin.Get(f.t.Context(), client.ObjectKeyFromObject(run), run); err != nil {
		f.t.Fatal(err)
	}
}
