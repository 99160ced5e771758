package policy_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// own makes the stage's Run the controller of its pod, as the operator does.
func (s *fixture) own(t *testing.T) {
	t.Helper()
	pod := s.pod.DeepCopy()
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.run, v1alpha1.GroupVersion.WithKind("Run"))}
	if err := s.Admin.Patch(t.Context(), pod, client.MergeFrom(s.pod)); err != nil {
		t.Fatal(err)
	}
	s.pod = pod
}

// owners is a patch of the owners of a pod: reference is one, the rest is of it.
func owners(run *v1alpha1.Run, rest string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(
		`{"metadata":{"ownerReferences":[{"apiVersion":"deckhand.dev/v1alpha1","kind":"Run","name":%q,"uid":%q,%s}]}}`, run.Name, run.UID, rest)))
}

func TestOnlyTheOperatorChangesTheOwnerOfARunnerPod(t *testing.T) {
	s := newFixture(t)
	s.own(t)
	c := editor(t, s)
	namesake := s.run.DeepCopy()
	namesake.UID = "6e1b1b0e-5f4f-4d5f-8f3f-000000000000"
	for name, patch := range map[string]client.Patch{
		"taking the owner away":      client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`)),
		"another Run as the owner":   owners(s.foreign, `"controller":true,"blockOwnerDeletion":true`),
		"a namesake of its Run":      owners(namesake, `"controller":true,"blockOwnerDeletion":true`),
		"an owner that controls not": owners(s.run, `"controller":false,"blockOwnerDeletion":true`),
		"a second owner": client.RawPatch(types.StrategicMergePatchType, []byte(
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"keep","uid":"6e1b1b0e-5f4f-4d5f-8f3f-000000000000"}]}}`)),
	} {
		t.Run(name, func(t *testing.T) {
			err := c.Patch(t.Context(), s.pod.DeepCopy(), patch)
			if !apitest.IsPolicy(err) || !strings.Contains(err.Error(), "only the operator and the garbage collector may change ownerReferences of a runner pod: delete the Run, or the pod, instead") {
				t.Errorf("the server says %v, want a refusal by the policy", err)
			}
		})
	}
	if err := c.Patch(t.Context(), s.pod.DeepCopy(), owners(s.run, `"controller":true,"blockOwnerDeletion":false`)); err != nil {
		t.Errorf("blockOwnerDeletion alone: %v", err)
	}
}

// The garbage collector deletes dependents in the background and in the
// foreground, and has them stay: for each it changes owners, in these words.
func TestTheGarbageCollectorChangesTheOwnerOfARunnerPod(t *testing.T) {
	for _, user := range []string{"system:serviceaccount:kube-system:generic-garbage-collector", "system:kube-controller-manager"} {
		t.Run(user, func(t *testing.T) {
			s := newFixture(t)
			s.own(t)
			gc := s.As(t, user, s.namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "patch", "update"}})
			patch := func(text string) error {
				return gc.Patch(t.Context(), s.pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(text)))
			}
			unblock := fmt.Sprintf(`{"metadata":{"uid":%q,"ownerReferences":[{"uid":%q,"name":%q,"apiVersion":"deckhand.dev/v1alpha1","kind":"Run","controller":true,"blockOwnerDeletion":false}]}}`, s.pod.UID, s.run.UID, s.run.Name)
			if err := patch(unblock); err != nil {
				t.Errorf("foreground deletion: %v", err)
			}
			if err := patch(`{"metadata":{"annotations":{"deckhand.dev/signals":"{}"}}}`); !apitest.IsPolicy(err) {
				t.Errorf("the garbage collector tells a runner something: %v, want a refusal", err)
			}
			if err := patch(fmt.Sprintf(`{"metadata":{"uid":%q,"ownerReferences":[{"$patch":"delete","uid":%q}]}}`, s.pod.UID, s.run.UID)); err != nil {
				t.Errorf("orphaning: %v", err)
			}
			var pod corev1.Pod
			if err := s.Admin.Get(t.Context(), client.ObjectKeyFromObject(s.pod), &pod); err != nil || len(pod.OwnerReferences) != 0 {
				t.Errorf("the owners are %v (%v), want none", pod.OwnerReferences, err)
			}
		})
	}
}
