package backlog_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/backlog"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

func hasPod(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{Number: 1, PodUID: "uid"} }

func isClaimed(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{Number: 1} }

func isFinished(r *v1alpha1.Run) {
	hasPod(r)
	r.Status.CompletionTime = &metav1.Time{Time: gen.Noon}
}

func ofWorkflow(r *v1alpha1.Run) { r.Spec.Agent, r.Spec.Workflow = "", "release" }

// find shows a controller's queue Runs that are there when it starts.
func find(t *testing.T, q priorityqueue.PriorityQueue[reconcile.Request], many int, is func(*v1alpha1.Run), name string) {
	t.Helper()
	for n := range many {
		run := gen.Run(is, func(r *v1alpha1.Run) { r.Name = fmt.Sprint(name, n) })
		e := event.CreateEvent{Object: run, IsInInitialList: true}
		handlers := []handler.EventHandler{&handler.EnqueueRequestForObject{}, backlog.Handler()}
		for _, h := range handlers {
			h.Create(t.Context(), e, q)
		}
	}
}

// next are the names of what a worker gets next.
func next(q priorityqueue.PriorityQueue[reconcile.Request], many int) []string {
	var out []string
	for range many {
		key, _, _ := q.GetWithPriority()
		out = append(out, key.Name)
		q.Done(key)
	}
	return out
}

func TestWhatIsReconciledFirst(t *testing.T) {
	q := priorityqueue.New[reconcile.Request]("test")
	defer q.ShutDown()
	find(t, q, 3, isFinished, "finished")
	find(t, q, 2, hasPod, "underway")
	find(t, q, 1, isClaimed, "claimed")
	find(t, q, 1, func(*v1alpha1.Run) {}, "new")
	find(t, q, 1, ofWorkflow, "workflow")
	q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: gen.Namespace, Name: "changed"}})
	want := []string{"claimed0", "new0", "workflow0", "changed", "underway0", "underway1", "finished0", "finished1", "finished2"}
	if got := next(q, len(want)); !slices.Equal(got, want) {
		t.Errorf("it is\n%q, want\n%q", got, want)
	}
}

// The clock is the test's. Runs that wait for a pod come faster than they are dealt
// with.
func TestRunsThatAreUnderwayAreNotHeldUpForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := priorityqueue.New[reconcile.Request]("test")
		find(t, q, 1, hasPod, "underway")
		for second := range 60 {
			find(t, q, 2, isClaimed, fmt.Sprintf("claimed%d-", second))
			if got := next(q, 1); got[0] == "underway0" {
				q.ShutDown()
				return
			}
			time.Sleep(time.Second)
		}
		t.Error("it is not reconciled within a minute")
		q.ShutDown()
	})
}
