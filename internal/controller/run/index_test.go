package run

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/labelindex"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

var errNoIndex = errors.New("it has no index")

// What it costs to move a Run must not grow with how many others there are: nothing
// is looked for among all objects of the namespace.
func TestNoStepListsAllObjectsOfTheNamespace(t *testing.T) {
	s := newRefuser(t, gen.Run(), gen.Agent())
	lists := 0
	cached := labelindex.Client{Client: interceptor.NewClient(s, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			var o client.ListOptions
			o.ApplyOptions(opts)
			if o.FieldSelector == nil {
				return fmt.Errorf("listing %T by %v: %w", list, o.LabelSelector, errNoIndex)
			}
			lists++
			return c.List(ctx, list, opts...)
		},
	})}
	s.reconciler.connect(cached, s, nil)
	s.begin()
	s.report()
	s.reconcileAll(2)
	run := s.get()
	run.Status.Internal.Delegated = []string{childMark("a")} // it may have child Runs
	run.Status.CompletionTime = &metav1.Time{Time: s.Now}
	if err := s.Status().Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	s.reconcileAll(1)
	s.Now = s.Now.Add(2 * time.Hour)
	s.reconcileAll(1)
	var pods corev1.PodList
	if err := s.List(t.Context(), &pods); err != nil || len(pods.Items) > 0 {
		t.Fatalf("the Run still has %d pods: %v", len(pods.Items), err)
	}
	child := gen.Run(func(r *v1alpha1.Run) {
		r.Name, r.UID, r.ResourceVersion = "x-a", "child", ""
		r.Labels = map[string]string{v1alpha1.LabelParentRun: "x"}
		r.Spec.TTLSecondsAfterFinished = new(int32)
		r.Status.CompletionTime = run.Status.CompletionTime
	})
	if err := s.Create(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	if got := (runFinder{client: cached}).childrenOf(t.Context(), run); len(got) != 1 {
		t.Errorf("the children of the Run are %v", got)
	}
	if lists < 5 {
		t.Errorf("only %d lists were made", lists)
	}
}
