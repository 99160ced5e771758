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

// delayed returns a handler that delays requests, so that an object is reconciled once for many events.
func delayed(h handler.EventHandler, by time.Duration) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requestQueue) { h.Create(ctx, e, delayedQueue{q, by}) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requestQueue) { h.Update(ctx, e, delayedQueue{q, by}) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q requestQueue) { h.Delete(ctx, e, delayedQueue{q, by}) },
	}
}

// A delayedQueue adds each request after a delay. A request that is already waiting keeps its time.
type delayedQueue struct {
	requestQueue

	by time.Duration
}

func (d delayedQueue) Add(r reconcile.Request) { d.AddAfter(r, d.by) }
