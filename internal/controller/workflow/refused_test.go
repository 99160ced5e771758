package workflow

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/denial/denialtest"
	"github.com/deckhand-dev/deckhand/internal/gen"
	"github.com/deckhand-dev/deckhand/internal/sweep"
)

// A version that cannot be removed keeps no Workflow from being reported on.
func TestAWorkflowSaysWhichVersionCannotBeRemoved(t *testing.T) {
	for class, f := range denialtest.Failures() {
		t.Run(class, func(t *testing.T) {
			old := version(t, release(otherwise), time.Hour)
			c := fake.NewClientBuilder().WithScheme(schemeOf(t)).WithObjects(&old, gen.Agent(), gen.Model(), release()).WithStatusSubresource(&v1alpha1.Workflow{}).
				WithIndex(&v1alpha1.Run{}, sweep.ByVersion, sweep.UnfinishedByVersion).
				WithInterceptorFuncs(interceptor.Funcs{Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
					return f.Err("delete", "ConfigMap", o.GetName(), 1)
				}}).Build()
			key := client.ObjectKeyFromObject(release())
			if _, err := New(c, func() time.Time { return gen.Noon }).Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err == nil {
				t.Error("the removal is not tried again")
			}
			var is v1alpha1.Workflow
			if err := c.Get(t.Context(), key, &is); err != nil {
				t.Fatal(err)
			}
			said := readyOf(is.Status.Conditions)
			if !strings.HasPrefix(said, "True 2 nodes. Deleting ConfigMap ") || !strings.Contains(said, f.Want) {
				t.Errorf("Ready is %q, want it to name %q", said, f.Want)
			}
		})
	}
}

// schemeOf knows the kinds that the controller deals with.
func schemeOf(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// readyOf is the status and message of the condition Ready.
func readyOf(conditions []metav1.Condition) string {
	for _, c := range conditions {
		if c.Type == v1alpha1.ConditionReady {
			return string(c.Status) + " " + c.Message
		}
	}
	return ""
}
