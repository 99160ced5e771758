package policy_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

func volumeClaim(namespace, name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// mountingPod mounts a claim, to write unless told otherwise.
func mountingPod(namespace, claim string, access string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "look-"},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c", Image: "c"}},
			Volumes: []corev1.Volume{
				{Name: "other", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim, ReadOnly: access == "read"}}},
			},
		},
	}
}

// The journal of a Run, and what people decided, lie on its volume: whoever may
// create pods may look at it and not write to it, nor put another in its place.
func TestWhoMayCreatePodsMayNotWriteToTheVolumeOfARun(t *testing.T) {
	s := newFixture(t)
	c := s.As(t, "eve", s.namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "persistentvolumeclaims"}, Verbs: []string{"create"}})
	cases := map[string]struct {
		object client.Object
		want   string
	}{
		"a pod that writes to it":     {mountingPod(s.namespace, "deckhand-run-x-12345678", "write"), "only the operator may create pods that can write to the volume of a Run: set persistentVolumeClaim.readOnly: true to read it"},
		"a pod that reads it":         {mountingPod(s.namespace, "deckhand-run-x-12345678", "read"), ""},
		"a pod that writes elsewhere": {mountingPod(s.namespace, "data", "write"), ""},
		"a claim of that name":        {volumeClaim(s.namespace, "deckhand-run-x-12345678"), "only the operator may create PersistentVolumeClaims whose names begin with deckhand-run-: choose another name"},
		"a claim of another name":     {volumeClaim(s.namespace, "deckhand-runs"), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.Create(t.Context(), tc.object, client.DryRunAll)
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !apitest.IsPolicy(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want a policy's, with %q", err, tc.want)
			}
		})
	}
}
