package controller_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// newDelegatingFixture is a fixture whose Agent keeps its journal on a volume and gives the
// reviewer work in Runs of their own.
func newDelegatingFixture(t *testing.T, mods ...func(*v1alpha1.Run)) *fixture {
	t.Helper()
	b := newFixture(t, mods...)
	b.Create(t, gen.Agent(func(a *v1alpha1.Agent) { a.Name, a.Namespace, a.UID, a.Spec.Tools = "reviewer", b.namespace, "", nil }))
	b.update(func(a *v1alpha1.Agent) {
		a.Spec.Workspace.Durability = v1alpha1.DurabilityVolume
		a.Spec.Tools = append(a.Spec.Tools, v1alpha1.Tool{Agent: "reviewer", Delegation: &v1alpha1.Delegation{Mode: v1alpha1.AgentModeRun}})
	})
	return b
}

// reviews are requests for Runs of the reviewer, as a runner reports them.
func (b *fixture) reviews(attempt int, ids ...string) task.Progress {
	p := task.Progress{Attempt: attempt, Effects: task.EffectsBegun, State: v1alpha1.ReasonAwaitingChild}
	for _, id := range ids {
		p.Pending = append(p.Pending, task.Pending{
			ID: id, Kind: task.PendingDelegation, Agent: "reviewer", Args: `{"prompt":"Review ${{ this }}."}`,
			Digest: callDigest, AskedAt: b.now.UTC().Format(time.RFC3339),
		})
	}
	return p
}

func (b *fixture) named(name string) *v1alpha1.Run {
	b.t.Helper()
	var out v1alpha1.Run
	if err := b.Admin.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, &out); err != nil {
		b.t.Fatalf("getting the Run %s: %v", name, err)
	}
	return &out
}

// ends writes how a Run ended, as its own controller would.
func (b *fixture) ends(name, reason, text string) {
	b.t.Helper()
	child := b.named(name)
	before := child.DeepCopy()
	o := runstatus.Outcome{Status: metav1.ConditionTrue, Reason: reason, Message: "The work is done"}
	if reason != v1alpha1.ReasonFinished {
		o.Status, o.Message = metav1.ConditionFalse, "It did not work"
	}
	cost := int64(42)
	child.Status.Progress = &v1alpha1.RunProgress{
		Usage:  v1alpha1.Usage{InputTokens: 90, OutputTokens: 10, TotalTokens: 100, Cost: "0.000042USD", CostMicroUSD: &cost},
		Result: &v1alpha1.Result{Committed: true, Reason: reason, Text: text},
	}
	o.WriteStatus(&child.Status, child, b.now)
	if err := b.Admin.Status().Patch(b.t.Context(), child, client.MergeFrom(before)); err != nil {
		b.t.Fatal(err)
	}
}

// childSignals is what the runner of a pod is told of child Runs.
func childSignals(t *testing.T, pod *corev1.Pod) []task.Child {
	t.Helper()
	var said task.Signals
	if text := pod.Annotations[v1alpha1.AnnotationSignals]; text != "" {
		if err := json.Unmarshal([]byte(text), &said); err != nil {
			t.Fatal(err)
		}
	}
	return said.Children
}

// A runner asks for a Run, leaves, and the next attempt knows how that ended from
// the first moment on.
func TestARunGivesWorkToAnother(t *testing.T) {
	b := newDelegatingFixture(t, func(r *v1alpha1.Run) {
		r.Labels = map[string]string{"team": "harbor", "kueue.x-k8s.io/queue-name": "cheap"}
		r.Spec.User = "ann"
	})
	b.reconcileUntilStable()
	b.startRunner(b.onlyPod())
	askQuestions := b.reviews(1, "s2c1")
	b.mustReport(b.onlyPod(), askQuestions)
	b.reconcileUntilStable()
	b.reconcileUntilStable()
	b.expect("Unknown AwaitingChild")
	child := b.named("x-s2c1")
	if !metav1.IsControlledBy(child, b.run) || child.Labels[v1alpha1.LabelParentRun] != "x" || child.Labels["team"] != "harbor" || child.Labels["kueue.x-k8s.io/queue-name"] != "cheap" {
		t.Errorf("its metadata are %+v", child.ObjectMeta)
	}
	if s := child.Spec; s.Agent != "reviewer" || s.Prompt != "Review $${{ this }}." || s.User != "ann" || *s.Limits.Tokens != "500000" || *s.Limits.Depth != 3 {
		t.Errorf("its spec is %+v", s)
	}
	if text := message(b.get()); text != "Waiting for Run x-s2c1 of Agent reviewer (Pending)" {
		t.Errorf("the message is %q", text)
	}
	askQuestions.Result = &task.Result{Reason: task.ReasonWaiting}
	b.suspend("x-1", askQuestions)
	b.now = b.now.Add(24 * time.Hour)
	b.reconcileUntilStable()
	b.expect("Unknown AwaitingChild")
	b.ends("x-s2c1", v1alpha1.ReasonFinished, "LGTM")
	b.reconcileUntilStable()
	got := childSignals(t, b.podOf("x-2"))
	if len(got) != 1 || got[0].Run != "x-s2c1" || got[0].Text != "LGTM" || got[0].Reason != task.ReasonFinished || got[0].Usage.TotalTokens != 100 || *got[0].Usage.CostMicroUSD != 42 {
		t.Fatalf("the next attempt knows %+v", got)
	}
	b.startRunner(b.podOf("x-2"))
	b.mustReport(b.podOf("x-2"), task.Progress{Attempt: 2, Effects: task.EffectsBegun})
	b.reconcileUntilStable()
	b.reconcileUntilStable()
	if got := childSignals(t, b.podOf("x-2")); len(got) > 0 {
		t.Errorf("it goes on and is told %+v all the same", got)
	}
	b.expect("Unknown Running")
	if s := b.get().Status; s.Disruptions+s.Failures != 0 || len(s.Internal.Delegated) != 1 {
		t.Errorf("the status is %+v", s)
	}
}

// The operator dies between making a child Run and recording it, looks at an old
// copy of the Run, and somebody has the name already: there is one child Run.
func TestAChildRunIsMadeOnce(t *testing.T) {
	b := newDelegatingFixture(t)
	b.Create(t, &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "x-s2c1"}, Spec: v1alpha1.RunSpec{Agent: "reviewer", Prompt: "Mine."}})
	b.reconcileUntilStable()
	b.startRunner(b.onlyPod())
	b.mustReport(b.onlyPod(), b.reviews(1, "s2c1"))
	old := b.get()
	failOnce(b, apierrors.NewInternalError(errCrash))
	if err := b.reconcile(); err == nil {
		t.Fatal("the report did not fail")
	}
	for range 3 {
		if err := b.reconcileCopy(old); err != nil && !apierrors.IsInvalid(err) {
			t.Fatal(err)
		}
	}
	b.reconcileUntilStable()
	b.expect("Unknown AwaitingChild")
	var all v1alpha1.RunList
	if err := b.Admin.List(t.Context(), &all, client.InNamespace(b.namespace), client.MatchingLabels{v1alpha1.LabelParentRun: "x"}); err != nil || len(all.Items) != 1 {
		t.Fatalf("there are %d: %v", len(all.Items), err)
	}
	child := all.Items[0]
	if len(b.get().Status.Internal.Delegated) != 1 || !strings.HasPrefix(child.Name, "x-") || child.Name == "x-s2c1" {
		t.Errorf("it is called %s, and the Run knows of %v", child.Name, b.get().Status.Internal.Delegated)
	}
	if err := b.Admin.Delete(t.Context(), &child); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	got := childSignals(t, b.onlyPod())
	if len(got) != 1 || got[0].Reason != v1alpha1.NodeReasonLost {
		t.Errorf("once it is deleted the runner is told %+v", got)
	}
	if err := b.Admin.List(t.Context(), &all, client.InNamespace(b.namespace), client.MatchingLabels{v1alpha1.LabelParentRun: "x"}); err != nil || len(all.Items) != 0 {
		t.Errorf("it is made again: %v", err)
	}
}

// What a person says of a Run reaches those that it asked for.
func TestChildRunsHoldAndStopWithTheirParent(t *testing.T) {
	b := newDelegatingFixture(t)
	b.reconcileUntilStable()
	b.startRunner(b.onlyPod())
	b.mustReport(b.onlyPod(), b.reviews(1, "s2c1", "s2c2"))
	b.reconcileUntilStable()
	b.reconcileUntilStable()
	b.ends("x-s2c2", v1alpha1.ReasonFinished, "LGTM")
	b.reconcileUntilStable()
	for _, step := range []struct{ say, want v1alpha1.DesiredState }{
		{v1alpha1.DesiredPaused, v1alpha1.DesiredPaused},
		{v1alpha1.DesiredRunning, v1alpha1.DesiredRunning},
		{v1alpha1.DesiredStopped, v1alpha1.DesiredStopped},
	} {
		b.setDesiredState(step.say)
		b.reconcileUntilStable()
		child := b.named("x-s2c1")
		if _, marked := child.Annotations[v1alpha1.AnnotationPaused]; child.Spec.DesiredState != step.want || marked != (step.want == v1alpha1.DesiredPaused) {
			t.Errorf("%s: it is to be %s, with %v", step.say, child.Spec.DesiredState, child.Annotations)
		}
	}
	if b.named("x-s2c2").Spec.DesiredState != v1alpha1.DesiredRunning {
		t.Error("one that has ended is told something")
	}
}

// A child Run that a workflow's Run froze a version for runs that one, whatever its
// Agent is now.
func TestAChildRunRunsTheVersionItWasMadeFor(t *testing.T) {
	b := newFixture(t)
	b.reconcileUntilStable()
	hash := b.get().Status.Attempt.AgentRevision
	b.update(func(a *v1alpha1.Agent) { a.Spec.Instructions = "You are somebody else." })
	owner := *metav1.NewControllerRef(b.run, v1alpha1.GroupVersion.WithKind("Run"))
	child := func(name, hash string) func(*v1alpha1.Run) {
		return func(r *v1alpha1.Run) {
			r.Name, r.OwnerReferences, r.Annotations = name, []metav1.OwnerReference{owner}, map[string]string{v1alpha1.AnnotationRevisionHash: hash}
		}
	}
	of := func(mod func(*v1alpha1.Run)) *v1alpha1.Run {
		r := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace}, Spec: v1alpha1.RunSpec{Agent: "fixer", Prompt: "Fix it."}}
		mod(r)
		if err := b.operator.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		b.run = r
		return b.reconcileUntilStable()
	}
	if is := of(child("x-node", hash)); is.Status.Attempt == nil || is.Status.Attempt.AgentRevision != hash {
		t.Errorf("it is %s: %s", succeeded(is), message(is))
	}
	if is := of(child("x-lost", strings.Repeat("0", 64))); succeeded(is) != "False Misconfigured" || !strings.Contains(message(is), "was deleted (ConfigMap deckhand-00000") {
		t.Errorf("one whose version is gone is %s: %s", succeeded(is), message(is))
	}
}

// How deep a Run is follows from those that it is a part of, whoever they are.
func TestRunsAreNoDeeperThanMayBe(t *testing.T) {
	b := newDelegatingFixture(t)
	one := int32(1)
	deep := &v1alpha1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "y", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(b.run, v1alpha1.GroupVersion.WithKind("Run"))}},
		Spec:       v1alpha1.RunSpec{Agent: "fixer", Prompt: "Fix it.", Limits: &v1alpha1.Limits{Depth: &one}},
	}
	if err := b.operator.Create(t.Context(), deep); err != nil {
		t.Fatal(err)
	}
	b.run = deep
	b.reconcileUntilStable()
	b.startRunner(b.onlyPod())
	b.mustReport(b.onlyPod(), b.reviews(1, "s2c1"))
	b.reconcileUntilStable()
	b.reconcileUntilStable()
	got := childSignals(t, b.onlyPod())
	if len(got) != 1 || got[0].Run != "" || !strings.HasPrefix(got[0].Message, "Delegation is limited to a depth of 1 (limits.depth), and this Run has depth 1") {
		t.Errorf("the runner is told %+v", got)
	}
	if b.get().Status.Internal.Delegated != nil {
		t.Error("a child Run is recorded")
	}
}

// A finished Run with a TTL stays for as long as the one that it is a part of may
// read what it found.
func TestTTLDoesNotRunWhileTheParentIsActive(t *testing.T) {
	b := newDelegatingFixture(t)
	parent := b.run
	ttl := int32(60)
	child := &v1alpha1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "y", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(parent, v1alpha1.GroupVersion.WithKind("Run"))}},
		Spec:       v1alpha1.RunSpec{Agent: "fixer", Prompt: "Fix it.", TTLSecondsAfterFinished: &ttl},
	}
	if err := b.operator.Create(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	b.run = child
	b.ends("y", v1alpha1.ReasonFinished, "LGTM")
	b.now = b.now.Add(time.Hour)
	b.reconcileUntilStable()
	b.ends(parent.Name, v1alpha1.ReasonFinished, "")
	b.now = b.now.Add(30 * time.Second)
	b.reconcileUntilStable()
	b.now = b.now.Add(31 * time.Second)
	if err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	if err := b.Admin.Get(t.Context(), client.ObjectKeyFromObject(child), &v1alpha1.Run{}); !apierrors.IsNotFound(err) {
		t.Errorf("a minute after its parent ended it is there: %v", err)
	}
}
