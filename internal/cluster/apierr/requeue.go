package apierr

import (
	"context"
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// conflictDelay is how long the cache has to receive changes after a conflict.
const conflictDelay = 100 * time.Millisecond

// stopGrace is how long a reconciliation may continue after the operator is stopped: less than
// the manager waits for its controllers (30 s).
const stopGrace = 10 * time.Second

// RequeueConflicts wraps a reconciler so that a conflict is requeued without an error in the
// log. A reconciliation that runs when the operator is stopped continues, so that it records
// what it created.
func RequeueConflicts(inner reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		step, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		defer context.AfterFunc(ctx, func() { time.AfterFunc(stopGrace, cancel) })()
		result, err := inner.Reconcile(step, req)
		switch {
		case IsConflict(err):
			return ctrl.Result{RequeueAfter: conflictDelay}, nil
		case ctx.Err() != nil && errors.Is(err, context.Canceled):
			return ctrl.Result{}, nil // another operator reconciles it
		}
		return result, err
	})
}
