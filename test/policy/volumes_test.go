package policy_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
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

// joined is a patch that makes a Run an owner of a claim, as the operator sends it.
func joined(claim *corev1.PersistentVolumeClaim, run *v1alpha1.Run) client.Patch {
	return client.RawPatch(types.MergePatchType, runnerpod.Join(run, claim))
}

// The owners of a claim are the Runs that may mount it. Whoever may change claims adds none, and the operator changes
// nothing else.
func TestWhoMayUseTheVolumeOfARun(t *testing.T) {
	s := newFixture(t)
	claim := volumeClaim(s.namespace, "deckhand-run-mine-12345678")
	claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.run, v1alpha1.GroupVersion.WithKind("Run"))}
	claim.Annotations = map[string]string{v1alpha1.AnnotationRetention: "24h0m0s", "team": "a"}
	other := volumeClaim(s.namespace, "data")
	for _, c := range []*corev1.PersistentVolumeClaim{claim, other} {
		s.Create(t, c)
	}
	merge := func(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }
	const (
		owners      = "only the operator and the garbage collector may change ownerReferences of the PersistentVolumeClaim of a Run"
		annotations = "only the operator may change deckhand.dev/ annotations of the PersistentVolumeClaim of a Run"
		runsOnly    = "the operator may change only the PersistentVolumeClaims of Runs"
		addOnly     = "the operator may only add Runs that do not control it"
		metaOnly    = "the operator may change only ownerReferences and deckhand.dev/ annotations"
		gc          = "system:serviceaccount:kube-system:generic-garbage-collector"
	)
	for name, tc := range map[string]struct {
		user  string
		claim *corev1.PersistentVolumeClaim
		patch client.Patch
		want  string
	}{
		"a user joins a Run":                  {"eve", claim, joined(claim, s.foreign), owners},
		"a user takes the owners away":        {"eve", claim, merge(`{"metadata":{"ownerReferences":null}}`), owners},
		"a user frees the files":              {"eve", claim, merge(`{"metadata":{"annotations":{"deckhand.dev/used-by":"x/y"}}}`), annotations},
		"a user removes the retention":        {"eve", claim, merge(`{"metadata":{"annotations":{"deckhand.dev/retention":null}}}`), annotations},
		"a user annotates it":                 {"eve", claim, merge(`{"metadata":{"annotations":{"team":"b"}}}`), ""},
		"a user owns another claim":           {"eve", other, joined(other, s.foreign), ""},
		"the operator joins a Run":            {apitest.Operator, claim, joined(claim, s.foreign), ""},
		"the operator joins to another claim": {apitest.Operator, other, joined(other, s.foreign), runsOnly},
		"the operator labels it":              {apitest.Operator, claim, merge(`{"metadata":{"labels":{"a":"b"}}}`), metaOnly},
		"the operator annotates it":           {apitest.Operator, claim, merge(`{"metadata":{"annotations":{"team":"b"}}}`), metaOnly},
		"the operator keeps it":               {apitest.Operator, claim, merge(`{"metadata":{"finalizers":["example.com/keep"]}}`), metaOnly},
		"the operator removes the owner":      {apitest.Operator, claim, merge(`{"metadata":{"ownerReferences":null}}`), addOnly},
		"the garbage collector removes it":    {gc, claim, merge(`{"metadata":{"ownerReferences":null}}`), ""},
		"the garbage collector joins a Run":   {gc, claim, joined(claim, s.foreign), owners},
	} {
		t.Run(name, func(t *testing.T) {
			c := s.As(t, tc.user, s.namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims", "persistentvolumeclaims/status"}, Verbs: []string{"get", "patch"}})
			says(t, c.Patch(t.Context(), tc.claim.DeepCopy(), tc.patch, client.DryRunAll), tc.want)
			if tc.want == owners || tc.want == annotations {
				says(t, c.Status().Patch(t.Context(), tc.claim.DeepCopy(), tc.patch, client.DryRunAll), tc.want)
			}
		})
	}
}
