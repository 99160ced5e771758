package controller_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/controller/run"
	"github.com/deckhand-dev/deckhand/internal/run/queue"
)

// A laggingCache is a cache of Runs, with the operator's index, that shows them as they
// were when it last looked.
type laggingCache struct {
	mu    sync.Mutex
	shown []v1alpha1.Run
}

func (l *laggingCache) look(b *fixture) {
	b.t.Helper()
	var list v1alpha1.RunList
	if err := b.Admin.List(b.t.Context(), &list, client.InNamespace(b.namespace)); err != nil {
		b.t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown = list.Items
}

// List answers what the index is asked for.
func (l *laggingCache) list(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	runs, is := list.(*v1alpha1.RunList)
	var o client.ListOptions
	o.ApplyOptions(opts)
	if !is || o.FieldSelector == nil {
		return c.List(ctx, list, opts...)
	}
	want := o.FieldSelector.Requirements()[0]
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.shown {
		if want.Field == queue.UnfinishedByAgent && slices.Contains(queue.IndexUnfinishedByAgent(&l.shown[i]), want.Value) {
			runs.Items = append(runs.Items, *l.shown[i].DeepCopy())
		}
	}
	return nil
}

// runs are all of the namespace, by how far they are.
func (b *fixture) runs() (active, queued, ended []v1alpha1.Run) {
	b.t.Helper()
	var list v1alpha1.RunList
	if err := b.Admin.List(b.t.Context(), &list, client.InNamespace(b.namespace)); err != nil {
		b.t.Fatal(err)
	}
	for _, r := range list.Items {
		switch {
		case r.Status.CompletionTime != nil:
			ended = append(ended, r)
		case r.Status.Attempt != nil:
			active = append(active, r)
		default:
			queued = append(queued, r)
		}
	}
	return active, queued, ended
}

// together reconciles Runs, 8 at a time, as the manager does.
func (b *fixture) together(r *run.Reconciler, runs []v1alpha1.Run) {
	b.t.Helper()
	var all sync.WaitGroup
	next := make(chan *v1alpha1.Run)
	for range 8 {
		all.Go(func() {
			for one := range next {
				if _, err := r.Reconcile(b.t.Context(), one); err != nil && !apierr.IsConflict(err) {
					b.t.Errorf("reconciling %s: %v", one.Name, err)
				}
			}
		})
	}
	for i := range runs {
		next <- runs[i].DeepCopy()
	}
	close(next)
	all.Wait()
}

// However many are made at once and however late the operator sees what it did
// itself, no more are active than may be, and the oldest come first.
func TestNoMoreRunsAreActiveThanMayBe(t *testing.T) {
	b := newFixture(t, func(r *v1alpha1.Run) { r.Name = "x-00" })
	two := int32(2)
	b.update(func(a *v1alpha1.Agent) { a.Spec.Concurrency = &two })
	for n := 1; n < 20; n++ {
		b.newRun(func(r *v1alpha1.Run) { r.Name = fmt.Sprintf("x-%02d", n) })
	}
	var cache laggingCache
	b.faults.List = cache.list
	r := b.reconciler()
	cache.look(b)
	for round := range 60 {
		for range 2 {
			active, queued, _ := b.runs()
			b.together(r, append(active, queued...))
		}
		active, queued, ended := b.runs()
		if len(ended) == 20 {
			return
		}
		b.inOrder(active, queued)
		if round == 0 && (succeeded(&queued[0]) != "Unknown Queued" || message(&queued[0]) != "1st in the queue of Agent fixer: 2 of 2 Runs are active") {
			t.Fatalf("the next is %s: %s", succeeded(&queued[0]), message(&queued[0]))
		}
		if round%2 == 1 { // they end, and then the cache shows it
			for _, one := range active {
				b.ends(one.Name, v1alpha1.ReasonFinished, "")
			}
			cache.look(b)
		}
	}
	t.Fatal("they do not come to an end")
}

// inOrder holds at any time: no more are active than two, and no older one waits.
func (b *fixture) inOrder(active, queued []v1alpha1.Run) {
	b.t.Helper()
	if len(active) > 2 {
		b.t.Fatalf("%d are active", len(active))
	}
	for _, one := range queued {
		for _, other := range active {
			if cmp.Or(one.CreationTimestamp.Compare(other.CreationTimestamp.Time), cmp.Compare(one.Name, other.Name)) < 0 {
				b.t.Fatalf("%s is active and %s waits", other.Name, one.Name)
			}
		}
	}
}

// A Run waits in the queue for as long as it takes, and limits.pending begins when
// that is over.
func TestPendingDoesNotRunInTheQueue(t *testing.T) {
	b := newFixture(t, func(r *v1alpha1.Run) { r.Name = "w" })
	one := int32(1)
	b.update(func(a *v1alpha1.Agent) { a.Spec.Concurrency = &one })
	var cache laggingCache
	b.faults.List = cache.list
	first := b.run
	cache.look(b)
	b.reconcileUntilStable()
	b.expect("Unknown Starting")
	b.newRun(func(r *v1alpha1.Run) { r.Name = "x" })
	b.run = b.named("x")
	cache.look(b)
	b.reconcileUntilStable()
	b.expect("Unknown Queued")
	b.now = b.now.Add(48 * time.Hour)
	b.reconcileUntilStable()
	b.expect("Unknown Queued")
	b.ends(first.Name, v1alpha1.ReasonFinished, "")
	if err := b.Admin.Delete(t.Context(), &v1alpha1.Model{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "sonnet"}}); err != nil {
		t.Fatal(err)
	}
	cache.look(b)
	b.reconcileUntilStable()
	b.expect("Unknown Pending")
	b.now = b.now.Add(9 * time.Minute)
	b.reconcileUntilStable()
	b.expect("Unknown Pending")
	b.now = b.now.Add(2 * time.Minute)
	b.reconcileUntilStable()
	b.expect("False PendingTimeout")
}

// A turn that was given is nobody else's, though the operator does not see yet that
// it was taken, and sees another Run that is older.
func TestATurnIsGivenOnce(t *testing.T) {
	b := newFixture(t, func(r *v1alpha1.Run) { r.Name = "b" })
	one := int32(1)
	b.update(func(a *v1alpha1.Agent) { a.Spec.Concurrency = &one })
	var cache laggingCache
	b.faults.List = cache.list
	r := b.reconciler()
	cache.look(b)
	step := func(name, want string) {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), b.named(name)); err != nil {
			t.Fatal(err)
		}
		if got := succeeded(b.named(name)); got != want {
			t.Fatalf("%s is %s, want %s", name, got, want)
		}
	}
	step("b", "Unknown Starting")
	b.newRun(func(r *v1alpha1.Run) { r.Name = "a" })
	older := *b.named("a")
	older.CreationTimestamp = metav1.NewTime(older.CreationTimestamp.Add(-time.Hour))
	cache.shown = append(cache.shown, older)
	step("a", "Unknown Queued")
	cache.look(b)
	step("a", "Unknown Queued")
	b.ends("b", v1alpha1.ReasonFinished, "")
	cache.look(b)
	step("a", "Unknown Starting")
}
