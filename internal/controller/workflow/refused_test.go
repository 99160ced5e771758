package workflow

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/apierr/apierrtest"
	"github.com/deckhand-dev/deckhand/internal/gc"
	"github.com/deckhand-dev/deckhand/internal/gen"
)

// A version that cannot be removed keeps no Workflow from being reported on.
func TestAWorkflowSaysWhichVersionCannotBeRemoved(t *testing.T) {
	for class, f := range apierrtest.Failures() {
		t.Run(class, func(t *testing.T) {
			old := version(t, release(otherwise), time.Hour)
			c := apierrtest.NewServer(t, []client.Object{&old, gen.Agent(), gen.Model(), release()}, func(b *fake.ClientBuilder) {
				b.WithIndex(&v1alpha1.Run{}, gc.UnfinishedRunsByRevision, gc.IndexUnfinishedRun)
			})
			c.RefuseAll("delete", "ConfigMap", f)
			key := client.ObjectKeyFromObject(release())
			if _, err := New(c, func() time.Time { return gen.Noon }).Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err == nil {
				t.Error("the removal is not tried again")
			}
			var is v1alpha1.Workflow
			if err := c.Get(t.Context(), key, &is); err != nil {
				t.Fatal(err)
			}
			ready := meta.FindStatusCondition(is.Status.Conditions, v1alpha1.ConditionReady)
			if said := string(ready.Status) + " " + ready.Message; !strings.HasPrefix(said, "True 2 nodes. Deleting ConfigMap ") || !strings.Contains(said, f.Want) {
				t.Errorf("Ready is %q, want it to name %q", said, f.Want)
			}
		})
	}
}
