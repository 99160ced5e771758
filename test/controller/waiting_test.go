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
	"github.com/deckhand-dev/deckhand/internal/digest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

var callDigest = strings.Repeat("d", 64)

// newDurableBench is one whose Agent keeps files and journal on a volume, and may
// ask people.
func newDurableBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	a := b.agent()
	a.Spec.Workspace.Durability = v1alpha1.DurabilityVolume
	a.Spec.Tools = append(a.Spec.Tools, v1alpha1.Tool{Builtin: v1alpha1.BuiltinAsk})
	if err := b.Admin.Update(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return b
}

// podOf is the pod of an attempt.
func (b *bench) podOf(name string) *corev1.Pod {
	b.t.Helper()
	var pod corev1.Pod
	if err := b.Admin.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, &pod); err != nil {
		b.t.Fatal(err)
	}
	return &pod
}

// tell is the runner's report, which must be taken.
func (b *bench) tell(pod *corev1.Pod, p task.Progress) {
	b.t.Helper()
	if err := b.report(pod, p); err != nil {
		b.t.Fatal(err)
	}
	b.now = b.now.Add(2 * time.Second)
}

// wants is what a person says of the Run.
func (b *bench) wants(state v1alpha1.DesiredState) {
	b.t.Helper()
	patch := `{"spec":{"desiredState":"` + string(state) + `"}}`
	if err := b.Admin.Patch(b.t.Context(), b.get(), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("person")); err != nil {
		b.t.Fatal(err)
	}
}

// leaves has the runner of a pod leave on purpose.
func (b *bench) leaves(name string, p task.Progress) {
	b.t.Helper()
	pod := b.podOf(name)
	b.tell(pod, p)
	b.exits(b.podOf(name), 75, "")
	b.crank()
}

// A Run waits without a runner, is approved, and the next attempt knows it from
// the first moment on.
func TestAnApprovalGoesToTheNextAttempt(t *testing.T) {
	b := newDurableBench(t)
	b.crank()
	b.starts(b.onlyPod())
	request := "s3c1-" + digest.Short(callDigest)
	name := "x." + request
	asks := task.Progress{Attempt: 1, Effects: task.EffectsBegun, State: v1alpha1.ReasonAwaitingApproval, Pending: []task.Pending{{
		ID: request, Kind: task.PendingApproval, Tool: "shell", Args: `{"command":"rm -r build"}`, Digest: callDigest,
		AskedAt: b.now.UTC().Format(time.RFC3339), ExpiresAt: b.now.Add(time.Hour).UTC().Format(time.RFC3339),
	}}}
	b.tell(b.onlyPod(), asks)
	b.crank()
	b.expect("Unknown AwaitingApproval")
	if text := message(b.get()); !strings.Contains(text, "named "+name+" with spec {run: x, request: "+request+", type: Approve (or type: Deny), by: <your user name>}") || !strings.Contains(text, `May I call shell with {"command":"rm -r build"}`) {
		t.Errorf("the message is %q", text)
	}
	asks.Result = &task.Result{Reason: task.ReasonWaiting}
	b.leaves("x-1", asks)
	b.expect("Unknown AwaitingApproval")
	b.decides(name, v1alpha1.DecisionSpec{Request: request, Type: v1alpha1.DecisionApprove})
	if d := b.crankDecision(name, nil); !strings.HasPrefix(applied(d), "Unknown Waiting On its way") {
		t.Errorf("Applied is %s", applied(d))
	}
	b.crank()
	var said task.Signals
	if err := json.Unmarshal([]byte(b.podOf("x-2").Annotations[v1alpha1.AnnotationSignals]), &said); err != nil || len(said.Decisions) != 1 || said.Decisions[0].Request != request {
		t.Fatalf("the next attempt begins knowing %+v: %v", said, err)
	}
	if s := b.get().Status; s.Attempt.Number != 2 || s.Attempt.VolumeClaim == "" || s.Failures+s.Disruptions != 0 {
		t.Errorf("the status is %+v", s)
	}
	b.starts(b.podOf("x-2"))
	b.tell(b.podOf("x-2"), task.Progress{Attempt: 2, Effects: task.EffectsBegun})
	if d := b.crankDecision(name, nil); !strings.HasPrefix(applied(d), "Unknown Waiting") {
		t.Errorf("before the call is asked about again Applied is %s", applied(d))
	}
	b.tell(b.podOf("x-2"), task.Progress{Attempt: 2, Effects: task.EffectsBegun, Decided: []task.Decided{{Name: name, Request: request, Digest: callDigest}}})
	if d := b.crankDecision(name, nil); applied(d) != "True Applied The runner acted on it" {
		t.Errorf("Applied is %s", applied(d))
	}
	b.crank() // tells the runner no more, which changes nothing of the Run
	b.crank()
	b.expect("Unknown Running")
	b.undoes(name)
}

// undoes takes away the proof of what the runner acted on.
func (b *bench) undoes(name string) {
	b.t.Helper()
	if err := b.Admin.Delete(b.t.Context(), &v1alpha1.Decision{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}); err != nil {
		b.t.Fatal(err)
	}
	b.crank()
	b.expect("False DecisionMismatch")
}

func TestPausedAndResumed(t *testing.T) {
	b := newDurableBench(t)
	b.crank()
	b.starts(b.onlyPod())
	b.tell(b.onlyPod(), task.Progress{Attempt: 1})
	b.wants(v1alpha1.DesiredPaused)
	b.crank()
	if text := b.onlyPod().Annotations[v1alpha1.AnnotationSignals]; !strings.Contains(text, `"pause":true`) {
		t.Errorf("the runner is told %s", text)
	}
	b.leaves("x-1", task.Progress{Attempt: 1, State: v1alpha1.ReasonPaused, Result: &task.Result{Reason: task.ReasonPaused}})
	b.expect("Unknown Paused")
	b.now = b.now.Add(time.Hour)
	b.crank()
	b.expect("Unknown Paused")
	b.wants(v1alpha1.DesiredRunning)
	b.crank()
	b.expect("Unknown Starting")
	if s := b.get().Status; s.Attempt.Number != 2 || s.Internal.ResumedAt == nil {
		t.Errorf("attempt %d, resumed at %v", s.Attempt.Number, s.Internal.ResumedAt)
	}
}

// An Agent waits for a Toolset, and a Toolset says what is wrong with it.
func TestAgentsWaitForToolsets(t *testing.T) {
	b := newBench(t)
	a := b.agent()
	a.Spec.Tools = append(a.Spec.Tools, v1alpha1.Tool{Toolset: "api", Approval: &v1alpha1.Approval{When: "args.id == 1"}})
	if err := b.Admin.Update(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	b.crankAgent()
	if got := readyOf(b.agent().Status.Conditions); !strings.HasPrefix(got, "False ToolsetNotFound") {
		t.Fatalf("Ready is %s", got)
	}
	set := &v1alpha1.Toolset{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "api"}, Spec: v1alpha1.ToolsetSpec{
		Requests: &v1alpha1.Requests{BaseURL: "https://api.example", Tools: []v1alpha1.RequestTool{{Name: "get", Description: "Gets.", Method: "GET", Path: "/x/${{ input.nmae }}"}}},
	}}
	b.Create(t, set)
	if got := b.crankToolset(set); got != "False ToolsetInvalid" {
		t.Errorf("Ready is %s", got)
	}
	b.crankAgent()
	if got := readyOf(b.agent().Status.Conditions); !strings.HasPrefix(got, "False ToolsetNotReady") {
		t.Errorf("Ready is %s", got)
	}
	set.Spec.Requests.Tools[0].Path = "/x"
	if err := b.Admin.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if got := b.crankToolset(set); !strings.HasPrefix(got, "True Ready") {
		t.Errorf("Ready is %s", got)
	}
	b.crankAgent()
	if got := readyOf(b.agent().Status.Conditions); !strings.HasPrefix(got, "True Ready") {
		t.Errorf("Ready is %s", got)
	}
}

func (b *bench) crankToolset(set *v1alpha1.Toolset) string {
	b.t.Helper()
	for range 2 {
		if err := b.Admin.Get(b.t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			b.t.Fatal(err)
		}
		if _, err := ready.Reconcilers(b.operator, func() time.Time { return b.now })["Toolset"].Reconcile(b.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(set)}); err != nil {
			b.t.Fatalf("reconciling the Toolset: %v", err)
		}
	}
	return readyOf(set.Status.Conditions)
}

// Whoever applies a manifest again, in either way, takes back nothing that a
// person has said of the Run since.
func TestApplyingAgainLosesNothingThatWasSaid(t *testing.T) {
	manifest := func(b *bench) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Run",
			"metadata": map[string]any{"name": "applied", "namespace": b.namespace},
			"spec":     map[string]any{"agent": "fixer", "prompt": "Fix it."},
		}}
	}
	for name, apply := range map[string]func(b *bench){
		"on the server": func(b *bench) {
			o := manifest(b)
			if err := b.Admin.Patch(b.t.Context(), o, client.Apply, client.FieldOwner("gitops")); err != nil { //nolint:staticcheck // of what has no type
				b.t.Fatal(err)
			}
		},
		"by the client": func(b *bench) { b.applies(manifest(b)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			apply(b)
			b.run.Name = "applied"
			b.crank()
			b.starts(b.podOf("applied-1"))
			b.tell(b.podOf("applied-1"), task.Progress{Attempt: 1, State: v1alpha1.ReasonAwaitingAnswer, Pending: []task.Pending{{ID: "s3c1", Kind: task.PendingQuestion, Question: "?", AskedAt: "2030-01-01T00:00:00Z"}}})
			b.wants(v1alpha1.DesiredPaused)
			b.decides("applied.s3c1", v1alpha1.DecisionSpec{Request: "s3c1", Type: v1alpha1.DecisionAnswer, Value: "main"})
			b.crankDecision("applied.s3c1", nil)
			b.crank()
			before := b.get()
			said := b.podOf("applied-1").Annotations[v1alpha1.AnnotationSignals]
			apply(b)
			b.crank()
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
func (b *bench) applies(o *unstructured.Unstructured) {
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
