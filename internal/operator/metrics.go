package operator

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runmetrics"
	"github.com/deckhand-dev/deckhand/internal/shared/clock"
)

// metricsOptions returns how metrics are served. Without a certificate the server creates a
// self-signed one.
func metricsOptions(o Options) server.Options {
	out := server.Options{BindAddress: o.MetricsAddress}
	if o.MetricsAuthentication {
		out.SecureServing = true
		out.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return out
}

// addMetrics registers the metrics. Active Runs are counted by the leader only.
func addMetrics(mgr ctrl.Manager) error {
	runmetrics.Register()
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		runs, err := mgr.GetCache().GetInformer(ctx, &v1alpha1.Run{})
		if err != nil {
			return fmt.Errorf("counting active Runs: %w", err)
		}
		if _, err := runs.AddEventHandler(runmetrics.Handler(clock.Now)); err != nil {
			return fmt.Errorf("counting active Runs: %w", err)
		}
		return nil
	}))
}
