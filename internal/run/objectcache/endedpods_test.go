package objectcache_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/objectcache"
)

// reducedTask is the annotation that is kept: which attempt of which Run it is.
const reducedTask = `{"version":0,"run":{"namespace":"team","name":"fix","uid":"run"},"attempt":1,"limits":{"steps":0},"snapshotHash":""}`

func reduced(t *testing.T, pod *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	t.Helper()
	kept, err := objectcache.EndedPod(pod)
	if err != nil {
		t.Fatal(err)
	}
	return kept.(*metav1.PartialObjectMetadata)
}

// Pods may have no managed fields (the policy deckhand-runner-pod-managed-fields), and
// client-go transforms a listed object twice.
func TestEndedPodIsReducedOnce(t *testing.T) {
	full := func() *metav1.PartialObjectMetadata {
		m := objectcache.PodMetadata()
		yes := true
		m.ObjectMeta = metav1.ObjectMeta{
			Namespace: "team", Name: "fix-1", UID: "pod", ResourceVersion: "7",
			Labels: map[string]string{"app.kubernetes.io/name": "deckhand-runner", v1alpha1.LabelRun: "fix", v1alpha1.LabelAttempt: "1"},
			Annotations: map[string]string{
				v1alpha1.AnnotationTask:      `{"version":1,"run":{"namespace":"team","name":"fix","uid":"run"},"attempt":1,"snapshotHash":"abc"}`,
				v1alpha1.AnnotationRetention: "1h0m0s",
				"sidecar.istio.io/inject":    "false",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "deckhand.dev/v1alpha1", Kind: "Run", Name: "fix", UID: "run", Controller: &yes}},
		}
		return m
	}
	managed := full()
	managed.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	injected := full() // without what only the operator's pods have
	injected.Labels, injected.OwnerReferences = map[string]string{v1alpha1.LabelRun: "other"}, nil

	bare := full() // a user removed what the policy does not guard yet
	bare.Labels, bare.OwnerReferences = nil, nil

	for name, pod := range map[string]*metav1.PartialObjectMetadata{
		"with managed fields": managed, "without managed fields": full(), "with other labels": injected, "without labels": bare,
	} {
		t.Run(name, func(t *testing.T) {
			m := reduced(t, pod)
			want := map[string]string{v1alpha1.AnnotationTask: reducedTask, v1alpha1.AnnotationRetention: "1h0m0s"}
			if diff := cmp.Diff(want, m.Annotations); diff != "" {
				t.Errorf("annotations -want +got:\n%s", diff)
			}
			if m.Labels == nil != (name != "with other labels" && name != "without labels") {
				t.Errorf("labels %v; nil stands for those of the operator", m.Labels)
			}
			if name != "with other labels" && name != "without labels" && (m.Labels != nil || m.OwnerReferences != nil) {
				t.Errorf("kept labels %v and owners %v, which the Run tells", m.Labels, m.OwnerReferences)
			}
			if m.Kind != "" || m.ManagedFields != nil {
				t.Errorf("kept the kind %q and managed fields %v", m.Kind, m.ManagedFields)
			}
			twice := reduced(t, m.DeepCopy())
			if diff := cmp.Diff(m, twice); diff != "" {
				t.Errorf("a second time -once +twice:\n%s", diff)
			}
		})
	}
}
