package runstatus

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// Metrics of Runs. Label values come from the closed list of reasons, never
// from names of objects.
var (
	settledTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "deckhand_runs_settled_total",
		Help: "Runs that became final, by the reason of their condition Succeeded.",
	}, []string{"reason"})
	settleSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "deckhand_runs_duration_seconds",
		Help:    "Time from the creation of a Run to its end.",
		Buckets: []float64{1, 2, 5, 10, 30, 60, 300, 900, 3600, 14400},
	})
	waitedTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "deckhand_runs_waited_total",
		Help: "Times that a Run had to wait or to try again, by reason.",
	}, []string{"reason"})
)

// Register adds the metrics to the registry, once per process.
var Register = sync.OnceFunc(func() {
	metrics.Registry.MustRegister(settledTotal, settleSeconds, waitedTotal)
})

// What a transition does to a Run.
const (
	settle = "Settle"
	wait   = "Wait"
	warn   = "Warn"
)

// observe counts a transition.
func observe(t Transition, run *v1alpha1.Run) {
	switch t.Action {
	case settle:
		settledTotal.WithLabelValues(t.Reason).Inc()
		settleSeconds.Observe(run.Status.CompletionTime.Sub(run.CreationTimestamp.Time).Seconds())
	case wait:
		waitedTotal.WithLabelValues(t.Reason).Inc()
	}
}
