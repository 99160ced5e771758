// Package backlog orders the Runs that an operator finds when it starts.
//
// controller-runtime reconciles existing objects after all objects that change later. With thousands of Runs, a Run
// that waits for its pod would be reconciled after every finished one. So Runs that wait for a pod come first, then
// other unfinished ones. Their delay is bounded: after some seconds they have the priority of changed objects.
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

// Priorities of Runs that exist at the start. Finished Runs have controller-runtime's own priority for existing
// objects; changed objects have 0.
const (
	waiting  = 0
	underway = handler.LowPriority / 2
)

// maxDelay is how much later Runs with a pod are reconciled than Runs that wait for a pod.
const maxDelay = 20 * time.Second

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Handler raises the priority of unfinished Runs that exist at the start. It is added to the
// handler that enqueues them: the highest of several priorities counts.
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
		time.AfterFunc(maxDelay, func() {
			priorities.AddWithOpts(priorityqueue.AddOpts{Priority: new(waiting)}, key)
		})
	}}
}

// waitsForPod reports whether the status of a Run has no pod yet. The Run of a workflow never has one, but its child
// Runs depend on it.
func waitsForPod(run *v1alpha1.Run) bool {
	return run.Spec.Workflow != "" || run.Status.Attempt == nil || run.Status.Attempt.PodUID == ""
}
