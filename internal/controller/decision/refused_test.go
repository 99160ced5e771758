package decision

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/denial/denialtest"
	"github.com/deckhand-dev/deckhand/internal/gen"
)

// A Decision that cannot be given an owner is reported on all the same.
func TestADecisionSaysWhatWasRefused(t *testing.T) {
	for class, f := range denialtest.Failures() {
		t.Run(class, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			run, d := asking(), answering("s3c1")
			run.ResourceVersion, d.UID = "", "decision-uid"
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(run, d).WithStatusSubresource(run, d).
				WithInterceptorFuncs(interceptor.Funcs{Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
					return f.Err("patch", "Decision", o.GetName(), 1)
				}}).Build()
			var seen v1alpha1.Decision
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(d), &seen); err != nil {
				t.Fatal(err)
			}
			if _, err := New(c, c, events.NewFakeRecorder(10), func() time.Time { return gen.Noon }).Reconcile(t.Context(), &seen); err == nil {
				t.Error("it is not tried again")
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(d), &seen); err != nil {
				t.Fatal(err)
			}
			if len(seen.Status.Conditions) == 0 || !strings.Contains(seen.Status.Conditions[0].Message, f.Want) {
				t.Errorf("the conditions are %+v, want one that names %q", seen.Status.Conditions, f.Want)
			}
		})
	}
}
