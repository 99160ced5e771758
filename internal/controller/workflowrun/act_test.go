package workflowrun

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/children"
	"github.com/deckhand-dev/deckhand/internal/gen"
)

// The clock is the test's: time passes only while all wait for the API server.
func TestChildrenAreCreatedAtTheSameTime(t *testing.T) {
	const many, roundTrip = 50, 10 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		s := newRefuser(t)
		var running, most atomic.Int64
		s.reconciler.client = interceptor.NewClient(s, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(roundTrip)
				running.Add(-1)
				return c.Create(ctx, o, opts...)
			},
		})
		parent := gen.Run()
		var all []child
		for n := range many {
			run := gen.Run(func(r *v1alpha1.Run) { r.Name, r.ResourceVersion = fmt.Sprintf("x-look-%02d", n), "" })
			all = append(all, child{place: place{"look", n}, Child: children.Child{Run: run, Names: []string{run.Name}}})
		}
		begun := time.Now()
		w, err := makeAll(world{run: parent}, all, func(batch []child) []creation { return s.reconciler.makeBatch(t.Context(), batch) })
		if err != nil || len(w.children) != many || len(w.refused) > 0 {
			t.Fatalf("%d are made, %d refused: %v", len(w.children), len(w.refused), err)
		}
		if !slices.IsSortedFunc(w.children, func(a, b *v1alpha1.Run) int { return strings.Compare(a.Name, b.Name) }) {
			t.Error("they are not in the order in which they were asked for")
		}
		if most.Load() != maxBatch {
			t.Errorf("at most %d are created at the same time, want %d", most.Load(), maxBatch)
		}
		if took := time.Since(begun); took != 7*roundTrip { // 1, 2, 4, 8, 16, 16 and 3 of them
			t.Errorf("it takes as long as %d round trips, want 7", took/roundTrip)
		}
	})
}
