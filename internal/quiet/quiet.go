// Package quiet keeps conflicts out of the log: a controller that acted on an
// old copy just looks again.
package quiet

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/internal/statuspatch"
)

// soon is how long the cache gets to catch up after a conflict.
const soon = 100 * time.Millisecond

// Conflicts requeues in silence what ended in a conflict.
func Conflicts(inner reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		result, err := inner.Reconcile(ctx, req)
		if statuspatch.IsConflict(err) {
			return ctrl.Result{RequeueAfter: soon}, nil
		}
		return result, err
	})
}
