package controller_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// Another controller sets a condition that the operator's cache does not show yet, at
// the beginning of the list and at its end: the operator's next write keeps it.
func TestConditionsOfOtherControllersSurvive(t *testing.T) {
	foreign := metav1.Condition{Type: "example.com/Admitted", Status: "True", Reason: "Quota", Message: "There is room", LastTransitionTime: metav1.Unix(1900000000, 0).Rfc3339Copy()}
	for name, index := range map[string]int{"first": 0, "last": -1} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			stale := b.get()
			changed := stale.DeepCopy()
			if index < 0 {
				index = len(changed.Status.Conditions)
			}
			changed.Status.Conditions = slices.Insert(changed.Status.Conditions, index, foreign)
			if err := b.Admin.Status().Update(t.Context(), changed); err != nil {
				t.Fatal(err)
			}
			_ = b.reconcileCopy(stale) // what it knows is old: it may be refused, and must not overwrite
			run := b.reconcileUntilStable()
			want := []string{foreign.Type, v1alpha1.ConditionFinished, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled, v1alpha1.ConditionSucceeded}
			var got []string
			for _, c := range run.Status.Conditions {
				got = append(got, c.Type)
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("there are the conditions %v, want %v", got, want)
			}
			if kept := meta.FindStatusCondition(run.Status.Conditions, foreign.Type); kept == nil || kept.Message != foreign.Message {
				t.Errorf("the condition of the other controller is %+v", kept)
			}
		})
	}
}

// The operator writes to a list that another controller changed after the operator read
// it, with no lock on the resource version.
func TestAConditionThatTheCacheDoesNotShowSurvives(t *testing.T) {
	b := newFixture(t)
	stale := b.reconcileUntilStable()
	changed := stale.DeepCopy()
	changed.Status.Conditions = append(changed.Status.Conditions, metav1.Condition{Type: "Audited", Status: "True", Reason: "R", LastTransitionTime: metav1.Unix(1900000000, 0)})
	if err := b.Admin.Status().Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	pod := b.onlyPod()
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "no node"}}
	if err := b.Admin.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if err := b.reconcileCopy(stale); err != nil {
		t.Fatal(err)
	}
	run := b.get()
	if run.ResourceVersion == changed.ResourceVersion {
		t.Fatal("the operator wrote nothing, so this shows nothing")
	}
	if !slices.ContainsFunc(run.Status.Conditions, func(c metav1.Condition) bool { return c.Type == "Audited" }) {
		t.Errorf("the operator removed it: %+v", run.Status.Conditions)
	}
}

// There is always room for the conditions of the operator.
func TestOtherControllersLeaveRoomForTheOperator(t *testing.T) {
	b := newFixture(t)
	run := b.get()
	for _, kind := range []string{"A", "B", "C", "D", "E"} {
		run.Status.Conditions = append(run.Status.Conditions, metav1.Condition{Type: kind, Status: "True", Reason: "R", LastTransitionTime: metav1.Unix(1900000000, 0)})
	}
	if err := b.Admin.Status().Update(t.Context(), run, &client.SubResourceUpdateOptions{}); err == nil {
		t.Error("5 conditions of others are accepted")
	}
	run.Status.Conditions = run.Status.Conditions[:len(run.Status.Conditions)-1]
	if err := b.Admin.Status().Update(t.Context(), run, &client.SubResourceUpdateOptions{}); err != nil {
		t.Errorf("4 conditions of others: %v", err)
	}
	if got := len(b.reconcileUntilStable().Status.Conditions); got != 8 {
		t.Errorf("there are %d conditions, want 8", got)
	}
}
