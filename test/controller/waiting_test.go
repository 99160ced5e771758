package controller_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/controller/ready"
	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

var callDigest = strings.Repeat("d", 64)

// newDurableFixture is a fixture whose Agent keeps files and journal on a volume, and may
// ask people.
func newDurableFixture(t *testing.T) *fixture {
	t.Helper()
	b := newFixture(t)
	a := b.agent()
	a.Spec.Workspace.Durability = v1alpha1.DurabilityVolume
	a.Spec.Tools = append(a.Spec.Tools, v1alpha1.Tool{Builtin: v1alpha1.BuiltinAsk})
	if err := b.Admin.Update(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return b
}

// podOf is the pod of an attempt.
func (b *fixture) podOf(name string) *corev1.Pod {
	b.t.Helper()
	var pod corev1.Pod
	if err := b.Admin.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, &pod); err != nil {
		b.t.Fatal(err)
	}
	return &pod
}

// mustReport sends a report as the runner, which must be accepted.
func (b *fixture) mustReport(pod *corev1.Pod, p task.Progress) {
	b.t.Helper()
	if err := b.report(pod, p); err != nil {
		b.t.Fatal(err)
	}
	b.now = b.now.Add(2 * time.Second)
}

// setDesiredState pauses or resumes the Run as a user.
func (b *fixture) setDesiredState(state v1alpha1.DesiredState) {
	b.t.Helper()
	patch := `{"spec":{"desiredState":"` + string(state) + `"}}`
	if err := b.Admin.Patch(b.t.Context(), b.get(), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("person")); err != nil {
		b.t.Fatal(err)
	}
}

// suspend has the runner of a pod end its attempt to wait without a pod.
func (b *fixture) suspend(name string, p task.Progress) {
	b.t.Helper()
	pod := b.podOf(name)
	b.mustReport(pod, p)
	b.endRunner(b.podOf(name), 75, "")
	b.reconcileUntilStable()
}

// A Run waits without a runner, is approved, and the next attempt knows it from
// the first moment on.
func TestAnApprovalGoesToTheNextAttempt(t *testing.T) {
	b := newDurableFixture(t)
	b.reconcileUntilStable()
	b.startRunner(b.onlyPod())
	request := "s3c1-" + digest.Short(callDigest)
	name := "x." + request
	askQuestions := task.Progress{Attempt: 1, Effects: task.EffectsBegun, State: v1alpha1.ReasonAwaitingApproval, Pending: []task.Pending{{
		ID: request, Kind: task.PendingApproval, Tool: "Shell", Args: `{"command":"rm -r build"}`, Digest: callDigest,
		AskedAt: b.now.UTC().Format(time.RFC3339), ExpiresAt: b.now.Add(time.Hour).UTC().Format(time.RFC3339),
	}}}
	b.mustReport(b.onlyPod(), askQuestions)
	b.reconcileUntilStable()
	b.expect("Unknown AwaitingApproval")
	if text := message(b.get()); !strings.Contains(text, "named "+name+" with spec {run: x, request: "+request+", type: Approve (or type: Deny), by: <your user name>}") || !strings.Contains(text, `May I call Shell with {"command":"rm -r build"}`) {
		t.Errorf("the message is %q", text)
	}
	askQuestions.Result = &task.Result{Reason: task.ReasonWaiting}
	b.suspend("x-1", askQuestions)
	b.expect("Unknown AwaitingApproval")
	b.createDecision(name, v1alpha1.DecisionSpec{Request: request, Type: v1alpha1.DecisionApprove})
	if d := b.reconcileDecision(name, nil); !strings.HasPrefix(applied(d), "Unknown Waiting On its way") {
		t.Errorf("Applied is %s", applied(d))
	}
	b.reconcileUntilStable()
	var said task.Signals
	if err := json.Unmarshal([]byte(b.podOf("x-2").Annotations[v1alpha1.AnnotationSignals]), &said); err != nil || len(said.Decisions) != 1 || said.Decisions[0].Request != request {
		t.Fatalf("the next attempt begins knowing %+v: %v", said, err)
	}
	if s := b.get().Status; s.Attempt.Number != 2 || s.Attempt.VolumeClaim == "" || s.Failures+s.Disruptions != 0 {
		t.Errorf("the status is %+v", s)
	}
	b.startRunner(b.podOf("x-2"))
	b.mustReport(b.podOf("x-2"), task.Progress{Attempt: 2, Effects: task.EffectsBegun})
	if d := b.reconcileDecision(name, nil); !strings.HasPrefix(applied(d), "Unknown Waiting") {
		t.Errorf("before the call is asked about again Applied is %s", applied(d))
	}
	b.mustReport(b.podOf("x-2"), task.Progress{Attempt: 2, Effects: task.EffectsBegun, Decided: []task.Decided{{Name: name, Request: request, Digest: callDigest}}})
	if d := b.reconcileDecision(name, nil); applied(d) != "True Applied The runner acted on it" {
		t.Errorf("Applied is %s", applied(d))
	}
	b.reconcileUntilStable() // tells the runner no more, which changes nothing of the Run
	b.reconcileUntilStable()
	b.expect("Unknown Running")
	b.deleteDecision(name)
}

// deleteDecision deletes the Decision that the runner acted on; the Run must end.
func (b *fixture) deleteDecision(name string) {
	b.t.Helper()
	if err := b.Admin.Delete(b.t.Context(), &v1alpha1.Decision{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}); err != nil {
		b.t.Fatal(err)
	}
	b.reconcileUntilStable()
	b.expect("False DecisionMismatch")
}

func TestPausedAndResumed(t *testing.T) {
	b := newDurableFixture(t)
	b.reconcileUntilStable()
	b.startRunner(b.onlyPod())
	b.mustReport(b.onlyPod(), task.Progress{Attempt: 1})
	b.setDesiredState(v1alpha1.DesiredPaused)
	b.reconcileUntilStable()
	if text := b.onlyPod().Annotations[v1alpha1.AnnotationSignals]; !strings.Contains(text, `"pause":true`) {
		t.Errorf("the runner is told %s", text)
	}
	b.suspend("x-1", task.Progress{Attempt: 1, State: v1alpha1.ReasonPaused, Result: &task.Result{Reason: task.ReasonPaused}})
	b.expect("Unknown Paused")
	b.now = b.now.Add(time.Hour)
	b.reconcileUntilStable()
	b.expect("Unknown Paused")
	b.setDesiredState(v1alpha1.DesiredRunning)
	b.reconcileUntilStable()
	b.expect("Unknown Starting")
	if s := b.get().Status; s.Attempt.Number != 2 || s.Internal.ResumedAt == nil {
		t.Errorf("attempt %d, resumed at %v", s.Attempt.Number, s.Internal.ResumedAt)
	}
}

// An Agent waits for a Toolset, and a Toolset says what is wrong with it.
func TestAgentsWaitForToolsets(t *testing.T) {
	b := newFixture(t)
	a := b.agent()
	a.Spec.Tools = append(a.Spec.Tools, v1alpha1.Tool{Toolset: "api", Approval: &v1alpha1.Approval{When: "args.id == 1"}})
	if err := b.Admin.Update(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	b.reconcileAgent()
	if got := readyOf(b.agent().Status.Conditions); !strings.HasPrefix(got, "False NotFound") {
		t.Fatalf("Ready is %s", got)
	}
	set := &v1alpha1.Toolset{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "api"}, Spec: v1alpha1.ToolsetSpec{
		Requests: &v1alpha1.Requests{BaseURL: "https://api.example", Tools: []v1alpha1.RequestTool{{Name: "get", Description: "Gets.", Method: "GET", Path: "/x/${{ input.nmae }}"}}},
	}}
	b.Create(t, set)
	if got := b.reconcileToolset(set); got != "False Invalid" {
		t.Errorf("Ready is %s", got)
	}
	b.reconcileAgent()
	if got := readyOf(b.agent().Status.Conditions); !strings.HasPrefix(got, "False NotReady") {
		t.Errorf("Ready is %s", got)
	}
	set.Spec.Requests.Tools[0].Path = "/x"
	if err := b.Admin.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if got := b.reconcileToolset(set); !strings.HasPrefix(got, "True Ready") {
		t.Errorf("Ready is %s", got)
	}
	b.reconcileAgent()
	if got := readyOf(b.agent().Status.Conditions); !strings.HasPrefix(got, "True Ready") {
		t.Errorf("Ready is %s", got)
	}
}

func (b *fixture) reconcileToolset(set *v1alpha1.Toolset) string {
	b.t.Helper()
	for range 2 {
		if err := b.Admin.Get(b.t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			b.t.Fatal(err)
		}
		if _, err := ready.Reconcilers(b.indexed(), b.events, func() time.Time { return b.now })["Toolset"].Reconcile(b.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(set)}); err != nil {
			b.t.Fatalf("reconciling the Toolset: %v", err)
		}
	}
	return readyOf(set.Status.Conditions)
}

// Whoever applies a manifest again, in either way, takes back nothing that a
// person has decided of the Run since.
func TestApplyingAgainKeepsDesiredStateAndDecisions(t *testing.T) {
	manifest := func(b *fixture) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Run",
			"metadata": map[string]any{"name": "applied", "namespace": b.namespace},
			"spec":     map[string]any{"agent": "fixer", "prompt": "Fix it."},
		}}
	}
	for name, apply := range map[string]func(b *fixture){
		"on the server": func(b *fixture) {
			o := manifest(b)
			if err := b.Admin.Patch(b.t.Context(), o, client.Apply, client.FieldOwner("gitops")); err != nil { //nolint:staticcheck // of what has no type
				b.t.Fatal(err)
			}
		},
		"by the client": func(b *fixture) { b.applies(manifest(b)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			apply(b)
			b.run.Name = "applied"
			b.reconcileUntilStable()
			b.startRunner(b.podOf("applied-1"))
			b.mustReport(b.podOf("applied-1"), task.Progress{Attempt: 1, State: v1alpha1.ReasonAwaitingAnswer, Pending: []task.Pending{{ID: "s3c1", Kind: task.PendingQuestion, Question: "?", AskedAt: "2030-01-01T00:00:00Z"}}})
			b.setDesiredState(v1alpha1.DesiredPaused)
			b.createDecision("applied.s3c1", v1alpha1.DecisionSpec{Request: "s3c1", Type: v1alpha1.DecisionAnswer, Value: "main"})
			b.reconcileDecision("applied.s3c1", nil)
			b.reconcileUntilStable()
			before := b.get()
			said := b.podOf("applied-1").Annotations[v1alpha1.AnnotationSignals]
			apply(b)
			b.reconcileUntilStable()
			after := b.get()
			if after.Spec.DesiredState != v1alpha1.DesiredPaused || after.Generation != before.Generation {
				t.Errorf("desiredState is %s, generation %d after %d", after.Spec.DesiredState, after.Generation, before.Generation)
			}
			if is := b.podOf("applied-1").Annotations[v1alpha1.AnnotationSignals]; is != said || !strings.Contains(is, `"pause":true`) || !strings.Contains(is, "main") {
				t.Errorf("the runner hears %s, and heard %s", is, said)
			}
		})
	}
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// applies does what kubectl apply does: what was applied, what is to be and what
// is there make a patch.
func (b *fixture) applies(o *unstructured.Unstructured) {
	b.t.Helper()
	text, err := o.MarshalJSON()
	if err != nil {
		b.t.Fatal(err)
	}
	o.SetAnnotations(map[string]string{lastApplied: string(text)})
	current := o.DeepCopy()
	if err := b.Admin.Get(b.t.Context(), client.ObjectKeyFromObject(o), current); err != nil {
		b.Create(b.t, o)
		return
	}
	modified, err := o.MarshalJSON()
	if err != nil {
		b.t.Fatal(err)
	}
	live, err := current.MarshalJSON()
	if err != nil {
		b.t.Fatal(err)
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(current.GetAnnotations()[lastApplied]), modified, live)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.Admin.Patch(b.t.Context(), current, client.RawPatch(types.MergePatchType, patch)); err != nil {
		b.t.Fatal(err)
	}
}
