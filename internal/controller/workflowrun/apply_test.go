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
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// The clock is the test's: time passes only while all wait for the API server.
func TestChildrenAreCreatedAtTheSameTime(t *testing.T) {
	const many, roundTrip = 50, 10 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		server := newRefuser(t)
		var running, most atomic.Int64
		server.reconciler.client = interceptor.NewClient(server, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(roundTrip)
				running.Add(-1)
				return c.Create(ctx, o, opts...)
			},
		})
		var all []newChild
		for n := range many {
			run := gen.Run(func(r *v1alpha1.Run) { r.Name, r.ResourceVersion = fmt.Sprintf("x-look-%02d", n), "" })
			all = append(all, newChild{childKey: childKey{"look", n}, Child: children.Child{Run: run, Names: []string{run.Name}}})
		}
		begun := time.Now()
		f, err := createAll(all, func(batch []newChild) []created { return server.reconciler.createBatch(t.Context(), batch) })
		if err != nil || len(f.created) != many || len(f.refused) > 0 {
			t.Fatalf("%d are made, %d refused: %v", len(f.created), len(f.refused), err)
		}
		if !slices.IsSortedFunc(f.created, func(a, b *v1alpha1.Run) int { return strings.Compare(a.Name, b.Name) }) {
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
