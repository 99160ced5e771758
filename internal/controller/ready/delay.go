package ready

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type requestQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// delayed returns a handler that collects requests for a while, so that an object to which many
// events lead at once is reconciled once.
func delayed(h handler.EventHandler, by time.Duration) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requestQueue) { h.Create(ctx, e, delayedQueue{q, by}) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requestQueue) { h.Update(ctx, e, delayedQueue{q, by}) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q requestQueue) { h.Delete(ctx, e, delayedQueue{q, by}) },
	}
}

// A delayedQueue adds each request after a while; one that is there already keeps its time.
type delayedQueue struct {
	requestQueue

	by time.Duration
}

func (q delayedQueue) Add(r reconcile.Request) { q.AddAfter(r, q.by) }
