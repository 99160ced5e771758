// Package backlog orders the Runs that an operator finds when it starts.
//
// controller-runtime reconciles what is found at the start after everything that
// changes later. Among thousands of Runs that would leave one that waits for its pod
// behind every finished one. So those go first that wait for a pod, then the others
// that are not finished. That the first hold up the others is bounded: after a while
// these are as urgent as what changes.
package backlog

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// Priorities of Runs that are found at the start. Those of finished ones are
// controller-runtime's own for what is found then; what changes has 0.
const (
	waiting  = 0
	underway = handler.LowPriority / 2
)

// patience is how long Runs that have a pod let those that wait for one go first.
const patience = 20 * time.Second

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Handler raises the priority of unfinished Runs that are found at the start. It is
// watched beside the handler that enqueues them: of several priorities the highest
// counts.
func Handler() handler.EventHandler {
	return handler.Funcs{CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
		priorities, has := q.(priorityqueue.PriorityQueue[reconcile.Request])
		run, is := e.Object.(*v1alpha1.Run)
		if !has || !is || !e.IsInInitialList || run.Status.CompletionTime != nil {
			return
		}
		key := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(run)}
		if waitsForPod(run) {
			priorities.AddWithOpts(priorityqueue.AddOpts{Priority: new(waiting)}, key)
			return
		}
		priorities.AddWithOpts(priorityqueue.AddOpts{Priority: new(underway)}, key)
		time.AfterFunc(patience, func() {
			priorities.AddWithOpts(priorityqueue.AddOpts{Priority: new(waiting)}, key)
		})
	}}
}

// waitsForPod reports whether a Run has no pod yet. One of a workflow has none of its
// own, but its children wait for it.
func waitsForPod(run *v1alpha1.Run) bool {
	return run.Spec.Workflow != "" || run.Status.Attempt == nil || run.Status.Attempt.PodUID == ""
}
