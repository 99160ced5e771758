package operator

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runmetrics"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/internal/shared/otlp"
)

// flushTimeout bounds how long the operator sends spans when it ends.
const flushTimeout = 2 * time.Second

// addTraces returns the exporter for the spans of Runs; nil: traces are not configured.
func addTraces(mgr ctrl.Manager, o Options) (runstatus.Spans, error) {
	if o.Supply.Traces == nil {
		return nil, nil //nolint:nilnil // no traces is a setting, not a fault
	}
	if err := otlp.CheckEndpoint(o.Supply.Traces.Endpoint); err != nil {
		return nil, err
	}
	log := o.Log.WithName("traces")
	exporter := otlp.New(otlp.Options{
		Endpoint: o.Supply.Traces.Endpoint,
		Resource: []otlp.Attribute{{Key: "service.name", Value: "deckhand"}},
		Warn:     func(err error) { log.Info("Spans are dropped; this is logged once", "error", err.Error()) },
	})
	err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		exporter.Close(flushTimeout)
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("adding the traces: %w", err)
	}
	return exporter, nil
}

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
