package policy_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// Runner pods have no managed fields, whatever is written to them later. A Kubernetes
// without MutatingAdmissionPolicies keeps them, as those of all pods.
func TestRunnerPodsHaveNoManagedFields(t *testing.T) {
	s := newFixture(t)
	cases := map[string]struct {
		labels  map[string]string
		tracked bool
	}{
		"a runner pod":                     {map[string]string{v1alpha1.LabelRun: "mine"}, !s.HasMutatingPolicies},
		"a pod without the label of a Run": {nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, GenerateName: "pod-", Labels: tc.labels},
				Spec:       corev1.PodSpec{ServiceAccountName: v1alpha1.RunnerServiceAccount, Containers: []corev1.Container{{Name: "c", Image: "c"}}},
			}
			s.Create(t, pod)
			if tracked := len(pod.ManagedFields) > 0; tracked != tc.tracked {
				t.Errorf("created: managed fields %+v, want any: %t", pod.ManagedFields, tc.tracked)
			}
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`))
			if err := s.Admin.Patch(t.Context(), pod, patch); err != nil {
				t.Fatal(err)
			}
			running := client.RawPatch(types.StrategicMergePatchType, []byte(`{"status":{"phase":"Running"}}`))
			if err := s.Admin.Status().Patch(t.Context(), pod, running); err != nil {
				t.Fatal(err)
			}
			if tracked := len(pod.ManagedFields) > 0; tracked != tc.tracked || pod.Annotations["a"] != "b" || pod.Status.Phase != corev1.PodRunning {
				t.Errorf("written: managed fields %+v, want any: %t; %+v", pod.ManagedFields, tc.tracked, pod.Status)
			}
		})
	}
}

// A server-side apply to a runner pod works, and is tracked.
func TestServerSideApplyToARunnerPod(t *testing.T) {
	s := newFixture(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "applied", Labels: map[string]string{v1alpha1.LabelRun: "mine"}},
		Spec:       corev1.PodSpec{ServiceAccountName: v1alpha1.RunnerServiceAccount, Containers: []corev1.Container{{Name: "c", Image: "c"}}},
	}
	s.Create(t, pod)
	text := []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"applied","annotations":{"a":"b"}}}`)
	if err := s.Admin.Patch(t.Context(), pod, client.RawPatch(types.ApplyPatchType, text), client.FieldOwner("me")); err != nil {
		t.Fatal(err)
	}
	if pod.Annotations["a"] != "b" || len(pod.ManagedFields) == 0 {
		t.Errorf("annotations %v, managed fields %+v", pod.Annotations, pod.ManagedFields)
	}
}

// A Run that is created has no managed fields, whatever is written to it later. One that is
// created by a server-side apply keeps them.
func TestRunsHaveManagedFieldsIfTheyAreApplied(t *testing.T) {
	s := newFixture(t)
	cases := map[string]struct {
		create  func(*v1alpha1.Run) error
		tracked bool
	}{
		"created": {func(run *v1alpha1.Run) error { return s.Admin.Create(t.Context(), run) }, !s.HasMutatingPolicies},
		"applied": {func(run *v1alpha1.Run) error { return s.applyRun(t, run) }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := s.manifest(name)
			if err := tc.create(run); err != nil {
				t.Fatal(err)
			}
			if tracked := len(run.ManagedFields) > 0; tracked != tc.tracked {
				t.Errorf("created: managed fields %+v, want any: %t", run.ManagedFields, tc.tracked)
			}
			report := client.RawPatch(types.MergePatchType, []byte(`{"status":{"progress":{"version":1,"attempt":1,"counts":{"steps":1}}}}`))
			if err := s.Admin.Status().Patch(t.Context(), run, report); err != nil {
				t.Fatal(err)
			}
			if tracked := len(run.ManagedFields) > 0; tracked != tc.tracked || run.Status.Progress == nil {
				t.Errorf("written: managed fields %+v, want any: %t", run.ManagedFields, tc.tracked)
			}
		})
	}
}

// A server-side apply to a Run that was created by other means changes it, and is tracked.
func TestServerSideApplyToARun(t *testing.T) {
	s := newFixture(t)
	run := s.manifest("adopted")
	s.Create(t, run)
	paused := s.manifest("adopted")
	paused.Spec.DesiredState = v1alpha1.DesiredPaused
	if err := s.applyRun(t, paused); err != nil {
		t.Fatal(err)
	}
	if paused.UID != run.UID || paused.Spec.DesiredState != v1alpha1.DesiredPaused || len(paused.ManagedFields) == 0 {
		t.Errorf("%s, managed fields %+v", paused.Spec.DesiredState, paused.ManagedFields)
	}
}

func (s *fixture) manifest(name string) *v1alpha1.Run {
	return &v1alpha1.Run{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run"},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec:       v1alpha1.RunSpec{Agent: "a", Prompt: "Read it."},
	}
}

// applyRun applies the manifest of a Run as Flux does, and reads what became of it.
func (s *fixture) applyRun(t *testing.T, run *v1alpha1.Run) error {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"apiVersion": run.APIVersion, "kind": run.Kind, "metadata": map[string]any{"namespace": run.Namespace, "name": run.Name}, "spec": run.Spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.Admin.Patch(t.Context(), run, client.RawPatch(types.ApplyPatchType, text), client.FieldOwner("me"), client.ForceOwnership)
}
