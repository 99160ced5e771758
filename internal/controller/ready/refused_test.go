package ready

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/gc"
	"github.com/deckhand-dev/deckhand/internal/testing/apierrtest"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// A revision that cannot be deleted keeps no Agent from having a status.
func TestAnAgentSaysWhichVersionCannotBeRemoved(t *testing.T) {
	old := agentRevision(t, gen.Agent(otherInstructions), time.Hour)
	testRefusedDelete(t, agents, gen.Agent(), old, "True Valid; Runs check Secrets and endpoints. Deleting ConfigMap ")
}

// A revision that cannot be deleted keeps no Workflow from having a status.
func TestAWorkflowSaysWhichVersionCannotBeRemoved(t *testing.T) {
	old := workflowRevision(t, release(otherPrompt), time.Hour)
	testRefusedDelete(t, workflows, release(), old, "True 2 nodes. Deleting ConfigMap ")
}

func testRefusedDelete[T client.Object, R any](t *testing.T, k kind[T, R], object T, old corev1.ConfigMap, want string) {
	t.Helper()
	for class, f := range apierrtest.Failures() {
		t.Run(class, func(t *testing.T) {
			objects := []client.Object{old.DeepCopy(), gen.Model(), object.DeepCopyObject().(client.Object)}
			if _, isAgent := client.Object(object).(*v1alpha1.Agent); !isAgent {
				objects = append(objects, gen.Agent())
			}
			c := apierrtest.NewServer(t, objects, func(b *fake.ClientBuilder) {
				b.WithIndex(&v1alpha1.Run{}, gc.UnfinishedRunsByRevision, gc.IndexUnfinishedRun).WithIndex(&corev1.Pod{}, gc.LivePodsByRevision, gc.IndexLivePod)
			})
			c.RefuseAll("delete", "ConfigMap", f)
			key := client.ObjectKeyFromObject(object)
			if _, err := newReconciler(k, testEnvironment(c, atNoon)).Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err == nil {
				t.Error("Reconcile() = nil: the deletion is not retried")
			}
			is := k.newObject()
			if err := c.Get(t.Context(), key, is); err != nil {
				t.Fatal(err)
			}
			ready := meta.FindStatusCondition(*k.status(is).conditions, v1alpha1.ConditionReady)
			if got := string(ready.Status) + " " + ready.Message; !strings.HasPrefix(got, want) || !strings.Contains(got, f.Want) {
				t.Errorf("Ready is %q, want it to name %q", got, f.Want)
			}
		})
	}
}
