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

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gc"
	"github.com/deckhand-dev/deckhand/internal/gen"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
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
		WithIndex(&v1alpha1.Run{}, gc.UnfinishedRunsByRevision, gc.IndexUnfinishedRun).Build()
	r := newReconciler(agents, c, func() time.Time { return gen.Noon })
	key := client.ObjectKey{Namespace: gen.Namespace, Name: "fixer"}
	s, err := r.observe(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]bool{needed.Name: false, unneeded.Name: true}, s.revisions.Unused); diff != "" {
		t.Errorf("unused -want +got:\n%s", diff)
	}
	names, err := agentsRequiredBy(t.Context(), c, &holder)
	if diff := cmp.Diff([]string{"fixer"}, names); diff != "" || err != nil {
		t.Errorf("reconciled -want +got:\n%s\n%v", diff, err)
	}
}
