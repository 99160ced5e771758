package ready

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/gc"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// What a stored revision of a Workflow requires is kept, and its Agent is reconciled when
// that revision is deleted.
func TestWorkflowsRequireRevisionsOfAgents(t *testing.T) {
	needed, unneeded := agentRevision(t, gen.Agent(otherInstructions), time.Hour), agentRevision(t, gen.Agent(), time.Hour)
	holder := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: gen.Namespace, Name: "deckhand-holder",
		Labels:      map[string]string{v1alpha1.LabelRevision: "true", v1alpha1.LabelWorkflow: "release"},
		Annotations: map[string]string{v1alpha1.AnnotationRequiredRevisions: snapshot.HashOf(&needed) + ",gone"},
	}}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&holder, &needed, &unneeded).
		WithIndex(&v1alpha1.Run{}, gc.UnfinishedRunsByRevision, gc.IndexUnfinishedRun).
		WithIndex(&corev1.Pod{}, gc.LivePodsByRevision, gc.IndexLivePod).Build()
	r := newReconciler(agents, testEnvironment(c, atNoon))
	key := client.ObjectKey{Namespace: gen.Namespace, Name: "fixer"}
	s, err := r.observe(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]bool{needed.Name: false, unneeded.Name: true}, s.revisions.Unused); diff != "" {
		t.Errorf("unused -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{unneeded.Name: false}, s.revisions.Mounted); diff != "" {
		t.Errorf("mounted -want +got:\n%s", diff)
	}
	names, err := agentsRequiredBy(t.Context(), c, &holder)
	if diff := cmp.Diff([]string{"fixer"}, names); diff != "" || err != nil {
		t.Errorf("reconciled -want +got:\n%s\n%v", diff, err)
	}
}

// A revision that no Run records is kept while a pod may still mount it: the operator records
// the first attempt of a Run later than its pod.
func TestAMountedRevisionIsKept(t *testing.T) {
	old := agentRevision(t, gen.Agent(otherInstructions), time.Hour)
	pod := func(phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "x-1"}, Status: corev1.PodStatus{Phase: phase},
			Spec: corev1.PodSpec{Volumes: []corev1.Volume{runnerpod.RevisionVolume(old.Name)}},
		}
	}
	cases := map[string]struct {
		pod  *corev1.Pod
		kept bool
	}{
		"by a pod that starts":        {pod(corev1.PodPending), true},
		"by a pod that works":         {pod(corev1.PodRunning), true},
		"by a pod that has ended":     {pod(corev1.PodSucceeded), false},
		"by a pod of another version": {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "x-1"}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, old.DeepCopy(), tc.pod)
			r := newReconciler(agents, testEnvironment(c, atNoon))
			key := client.ObjectKey{Namespace: gen.Namespace, Name: "fixer"}
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			if err != nil {
				t.Fatal(err)
			}
			is := c.Get(t.Context(), client.ObjectKeyFromObject(&old), &corev1.ConfigMap{})
			if (is == nil) != tc.kept || (result.RequeueAfter > 0) != tc.kept {
				t.Errorf("reading it: %v; it is looked at again after %s; want it kept: %t", is, result.RequeueAfter, tc.kept)
			}
		})
	}
}
