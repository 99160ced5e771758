package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// change patches a pod as an administrator, whom no admission policy holds back.
func (b *fixture) change(pod *corev1.Pod, patch string) {
	b.t.Helper()
	if err := b.Admin.Patch(b.t.Context(), pod.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		b.t.Fatal(err)
	}
}

const (
	withoutOwner  = `{"metadata":{"ownerReferences":null}}`
	withoutLabels = `{"metadata":{"labels":{"deckhand.dev/run":null,"deckhand.dev/attempt":null}}}`
	ofAnotherRun  = `{"metadata":{"ownerReferences":[{"apiVersion":"deckhand.dev/v1alpha1","kind":"Run","name":"y","uid":"6e1b1b0e-5f4f-4d5f-8f3f-000000000000","controller":true}]}}`
	relabelled    = `{"metadata":{"labels":{"deckhand.dev/run":"y","deckhand.dev/attempt":"7"}}}`
)

// A pod without its egress label, or with another one, is not selected by the
// NetworkPolicy that limits it.
func TestTheEgressLabelOfAPodIsRestored(t *testing.T) {
	for name, patch := range map[string]string{
		"removed": `{"metadata":{"labels":{"deckhand.dev/egress":null}}}`,
		"changed": `{"metadata":{"labels":{"deckhand.dev/egress":"other"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.networkPolicies()
			b.reconcileUntilStable()
			pod := b.onlyPod()
			b.startRunner(pod)
			if err := b.report(pod, task.Progress{Attempt: 1}); err != nil {
				t.Fatal(err)
			}
			b.reconcileUntilStable()
			b.change(pod, patch)
			for _, p := range b.policies() { // no pod has its label, so it may be swept
				if err := b.Admin.Delete(t.Context(), &p); err != nil {
					t.Fatal(err)
				}
			}
			b.reconcileUntilStable()
			label := b.onlyPod().Labels[v1alpha1.LabelEgress]
			if label == "" || label != pod.Labels[v1alpha1.LabelEgress] {
				t.Errorf("the label is %q, want %q", label, pod.Labels[v1alpha1.LabelEgress])
			}
			if policies := b.policies(); len(policies) != 1 || policies[0].Spec.PodSelector.MatchLabels[v1alpha1.LabelEgress] != label {
				t.Errorf("the policies are %v", policies)
			}
		})
	}
}

// Two live pods of one Run would do its work twice.
func TestAPodWithoutItsOwnerIsStillTheAttempts(t *testing.T) {
	for name, patches := range map[string][]string{
		"without owner":               {withoutOwner},
		"with another owner":          {ofAnotherRun},
		"without labels":              {withoutLabels},
		"with other labels":           {relabelled},
		"without owner and labels":    {withoutOwner, withoutLabels},
		"with another Run in all":     {ofAnotherRun, relabelled},
		"without owner, other labels": {withoutOwner, relabelled},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.reconcileUntilStable()
			pod := b.onlyPod()
			b.startRunner(pod)
			if err := b.report(pod, task.Progress{Attempt: 1}); err != nil {
				t.Fatal(err)
			}
			for _, patch := range patches {
				b.change(pod, patch)
			}
			b.now = b.now.Add(time.Minute)
			b.reconcileUntilStable()
			is := b.onlyPod()
			if a := b.get().Status.Attempt; a.Number != 1 || a.PodUID != string(is.UID) {
				t.Errorf("attempt is %+v", a)
			}
			if !metav1.IsControlledBy(is, b.get()) || is.Labels[v1alpha1.LabelRun] != "x" || is.Labels[v1alpha1.LabelAttempt] != "1" {
				t.Errorf("owners %v and labels %v are not restored", is.OwnerReferences, is.Labels)
			}
			b.expect("Unknown Running")
		})
	}
}

// The pod is there and not recorded when its owner goes: its task is the proof.
func TestAPodWithoutItsOwnerIsRecorded(t *testing.T) {
	b := newFixture(t)
	if err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	failOnce(b, errCrash)
	if err := b.reconcile(); !errors.Is(err, errCrash) {
		t.Fatalf("reconciling: %v", err)
	}
	b.change(b.onlyPod(), withoutOwner)
	b.reconcileUntilStable()
	if a := b.get().Status.Attempt; a.Number != 1 || a.PodUID != string(b.onlyPod().UID) {
		t.Errorf("attempt is %+v", a)
	}
}

// Whoever deletes a Run and has its pods stay wants them without an owner.
func TestThePodOfARunThatIsOrphanedKeepsNoOwner(t *testing.T) {
	b := newFixture(t)
	b.reconcileUntilStable()
	pod := b.onlyPod()
	b.startRunner(pod)
	orphan := metav1.DeletePropagationOrphan
	if err := b.Admin.Delete(t.Context(), b.get(), &client.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
		t.Fatal(err)
	}
	b.change(pod, withoutOwner) // as the garbage collector does
	for range 3 {
		if err := b.reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	if is := b.onlyPod(); len(is.OwnerReferences) != 0 {
		t.Errorf("the owners are %v", is.OwnerReferences)
	}
	if err := b.report(pod, task.Progress{Attempt: 1}); err != nil {
		t.Errorf("while the Run is there its runner reports: %v", err)
	}
}

// A finished Run deletes a pod that works on, whatever was done to it.
func TestAPodWithoutItsOwnerGoesWhenTheRunIsStopped(t *testing.T) {
	b := newFixture(t)
	b.reconcileUntilStable()
	pod := b.onlyPod()
	b.startRunner(pod)
	b.change(pod, withoutOwner)
	b.change(pod, withoutLabels)
	stopped := b.get()
	stopped.Spec.DesiredState = v1alpha1.DesiredStopped
	if err := b.Admin.Update(t.Context(), stopped); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	b.expect("False Stopped")
	for _, is := range b.pods() {
		if is.DeletionTimestamp == nil {
			t.Errorf("pod %s lives on", is.Name)
		}
	}
}

// Attempts that only waited are charged to nothing, and leave one pod at most.
func TestWaitingForASecretIsChargedToNothing(t *testing.T) {
	b := newFixture(t, func(r *v1alpha1.Run) {
		limit := v1alpha1.Duration("20s")
		r.Spec.Limits = &v1alpha1.Limits{Duration: &limit}
	})
	lacks := func(n int, seconds int64) string {
		return jsonOf(t, task.Termination{
			Version: task.Version, Attempt: n, Usage: task.Usage{DurationSeconds: seconds},
			Result: task.Result{Reason: task.ReasonSecretMissing, Message: "Secret sonnet has no key api-key in namespace " + b.namespace},
		})
	}
	for n := 1; n <= 3; n++ {
		b.reconcileUntilStable()
		pod := b.onlyPod()
		if a := b.get().Status.Attempt; int(a.Number) != n || a.PodUID != string(pod.UID) {
			t.Fatalf("attempt is %+v, want %d", a, n)
		}
		b.startRunner(pod)
		b.now = b.now.Add(15 * time.Second)
		b.endRunner(b.onlyPod(), task.ExitConfig, lacks(n, int64(15*n)))
		b.reconcileUntilStable()
		b.expect("Unknown SecretMissing")
		b.now = b.now.Add(time.Minute)
	}
	b.reconcileUntilStable()
	var told task.Task
	if err := json.Unmarshal([]byte(b.onlyPod().Annotations[v1alpha1.AnnotationTask]), &told); err != nil {
		t.Fatal(err)
	}
	is := b.get().Status
	if told.Meter.DurationSeconds != 0 || is.Failures+is.Disruptions != 0 || told.Attempt != 4 {
		t.Errorf("attempt %d begins with %d s used, after %d failures and %d disruptions", told.Attempt, told.Meter.DurationSeconds, is.Failures, is.Disruptions)
	}
}

func TestNamesakeIsAnotherRun(t *testing.T) {
	b := newFixture(t)
	b.reconcileUntilStable()
	old := b.get()
	oldPod := b.onlyPod()
	if err := b.Admin.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	b.run = b.newRun()
	if err := b.reconcileCopy(old); err != nil && !apierr.IsConflict(err) {
		t.Errorf("acting on the dead one: %v", err)
	}
	b.reconcileUntilStable()
	a := b.get().Status.Attempt
	if a.PodUID == string(oldPod.UID) || a.Number != 2 {
		t.Errorf("attempt is %+v; the dead Run's pod was adopted", a)
	}
}

func TestForeignPodIsNeverAdopted(t *testing.T) {
	b := newFixture(t)
	foreign := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "x-1", Labels: map[string]string{v1alpha1.LabelRun: "x", v1alpha1.LabelAttempt: "1"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "runner", Image: "evil"}}},
	}
	b.Create(t, foreign)
	b.reconcileUntilStable()
	a := b.get().Status.Attempt
	if a.Number != 2 || a.Pod != "x-2" || a.PodUID == string(foreign.UID) {
		t.Errorf("attempt is %+v", a)
	}
}

// Owner and labels anybody may write who may create pods; the runner's
// ServiceAccount only the operator may give.
func TestForgedPodIsNeverAdopted(t *testing.T) {
	b := newFixture(t)
	forged := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.namespace, Name: "x-1",
			Labels:          map[string]string{v1alpha1.LabelRun: "x", v1alpha1.LabelAttempt: "1"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(b.get(), v1alpha1.GroupVersion.WithKind("Run"))},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "runner", Image: "evil"}}},
	}
	b.Create(t, forged)
	b.endRunner(forged, 0, jsonOf(t, task.Termination{Version: 1, Attempt: 1, Result: task.Result{Committed: true, Reason: task.ReasonFinished, Text: "forged"}}))
	b.reconcileUntilStable()
	b.expect("Unknown Starting")
	if a := b.get().Status.Attempt; a.Number != 2 || a.PodUID == string(forged.UID) {
		t.Errorf("attempt is %+v", a)
	}
}

// patchProgress writes what a pod reports, whatever the admission policy says of that.
func (b *fixture) patchProgress(progress string) {
	b.t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"progress":`+progress+`}}`))
	if err := b.Admin.Status().Patch(b.t.Context(), b.get(), patch); err != nil {
		b.t.Fatal(err)
	}
}

// replaceRun deletes the Run, without its pod, and creates another of the same name. It returns the pod.
func (b *fixture) replaceRun() *corev1.Pod {
	b.t.Helper()
	b.reconcileUntilStable()
	earlier, pod := b.get(), b.onlyPod()
	b.deleted(metav1.DeletePropagationOrphan)
	b.newRun(func(r *v1alpha1.Run) { r.Name = earlier.Name })
	return pod
}

// The pod of a deleted Run, which was kept, has the name of the first pod of the next Run of that name,
// and its runner reports to it.
func TestThePodOfAnEarlierRunOfTheNameIsNotBelieved(t *testing.T) {
	b := newFixture(t)
	pod := b.replaceRun()
	result := task.Progress{Attempt: 1, Effects: task.EffectsBegun, Result: &task.Result{Committed: true, Reason: task.ReasonFinished}}
	if err := b.report(pod, result); err != nil {
		t.Fatalf("the report of the first pod of this name is refused: %v", err)
	}
	b.reconcileUntilStable()
	run := b.get()
	if a := run.Status.Attempt; run.Status.Progress != nil || a == nil || a.Number != 2 || a.PodUID == "" || a.PodUID == string(pod.UID) {
		t.Errorf("attempt %+v with the report %+v, want attempt 2 without one", a, run.Status.Progress)
	}
	c := b.WithToken(t, b.Token(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: v1alpha1.RunnerServiceAccount}}, pod))
	again := fmt.Appendf(nil, `[{"op":"add","path":"/status/progress","value":{"version":1,"attempt":1,"sequence":9000000000000,"podUID":%q}}]`, pod.UID)
	if err := c.Status().Patch(t.Context(), run.DeepCopy(), client.RawPatch(types.JSONPatchType, again)); err == nil || !strings.Contains(err.Error(), "fenced") {
		t.Errorf("a second report of that pod, without a test: %v, want it fenced", err)
	}
	for _, p := range b.pods() {
		if p.UID == pod.UID && metav1.IsControlledBy(&p, run) {
			t.Error("the pod of the earlier Run is owned by the next")
		}
	}
}

// That pod may report all the time: it does not keep the next Run from starting.
func TestReportsOfAnEarlierRunDoNotKeepTheNextFromStarting(t *testing.T) {
	b := newFixture(t)
	pod := b.replaceRun()
	reports := 0
	b.faults.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		reports++
		if err := b.report(pod, task.Progress{Attempt: 1}); err != nil && b.get().Status.Attempt == nil {
			t.Errorf("the pod of the earlier Run cannot report: %v", err)
		}
		return c.SubResource(sub).Patch(ctx, o, p, opts...)
	}
	if err := b.report(pod, task.Progress{Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	if err := b.reconcile(); err != nil {
		t.Fatalf("reserving the attempt while that pod reports: %v", err)
	}
	if run := b.get(); run.Status.Attempt == nil || run.Status.Progress != nil || reports == 0 {
		t.Errorf("attempt %+v, report %+v, after %d reports", run.Status.Attempt, run.Status.Progress, reports)
	}
}

// Two pods had the name of attempt 1 one after the other. The status is written only if the one that
// it records is still the one that reports.
func TestThePodThatReportsFirstIsTheAttempt(t *testing.T) {
	b := newFixture(t)
	if err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	second, copied := b.onlyPod(), b.get()
	b.patchProgress(`{"version":1,"attempt":1,"podUID":"the-first","effects":"Begun","sequence":1}`)
	b.now = b.now.Add(time.Minute)
	if err := b.reconcileCopy(copied); !apierr.IsConflict(err) {
		t.Fatalf("recording pod %s, after another has reported: %v, want a conflict", second.UID, err)
	}
	b.reconcileUntilStable()
	b.expect("False PodLost")
	if pods := b.pods(); len(pods) > 0 && pods[0].DeletionTimestamp == nil {
		t.Errorf("pod %s stays", pods[0].UID)
	}
}
