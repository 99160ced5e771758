// Package runmetrics counts Runs for Prometheus.
//
// Counters count what this process recorded since it started. Every number is taken from a
// status that the operator writes or receives anyway: there are no requests for metrics. Names of
// Runs are never label values, and the number of namespaces, Agents and Models is bounded.
package runmetrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// families are the metrics, in the order of the reference page.
var (
	finished = counter("deckhand_runs_finished_total",
		"Runs that ended, by the reason of their condition Succeeded.", "namespace", "agent", "reason")
	waited = counter("deckhand_runs_waited_total",
		"Times that a Run began to wait or to retry, by the reason of its condition Succeeded.", "namespace", "agent", "reason")
	active = gauge("deckhand_runs_active",
		"Runs that have not ended, by the reason of their condition Succeeded: for example Queued or AwaitingApproval. Only the leader has this metric.", "namespace", "agent", "reason")
	attemptsStarted = counter("deckhand_run_attempts_started_total",
		"Attempts that were started.", "namespace", "agent")
	attemptsFailed = counter("deckhand_run_attempts_failed_total",
		"Attempts that did not complete their Run, by class: Failure (the work failed) or Disruption (lost to infrastructure).", "namespace", "agent", "class")
	tokens = counter("deckhand_tokens_total",
		"Tokens of Runs that ended, by kind: Input (not from a cache), CacheRead, CacheWrite, Output (without reasoning) or Reasoning. The label model is the Model that answered last.", "namespace", "agent", "model", "kind")
	cost = counter("deckhand_cost_usd_total",
		"Cost of Runs that ended, in US dollars. Runs whose cost is unknown are in deckhand_runs_without_cost_total.", "namespace", "agent", "model")
	withoutCost = counter("deckhand_runs_without_cost_total",
		"Runs that ended after they used tokens of a Model without prices.", "namespace", "agent", "model")
	modelCalls = counter("deckhand_model_calls_total",
		"Requests to models of Runs that ended, retries included.", "namespace", "agent", "model")
	requestRepairs = counter("deckhand_model_request_repairs_total",
		"Changes to requests to models that a provider refused, or would refuse, of Runs that ended: spec.requestRepair of a Model. The label model is the Model that answered last.", "namespace", "agent", "model")
	modelWaits = counter("deckhand_model_wait_seconds_total",
		"Seconds that Runs waited for a model that was unavailable, counted when the wait ends. The label model is the Model that was asked last.", "namespace", "agent", "model")
	toolCalls = counter("deckhand_tool_calls_total",
		"Tool calls of Runs that ended, by result: Succeeded, Failed or Denied (by a policy, an approver or a timeout).", "namespace", "agent", "result")
	callErrors = counter("deckhand_call_errors_total",
		"Model calls and tool calls that failed, of Runs that ended.", "namespace", "agent")
	refusedConnections = counter("deckhand_refused_connections_total",
		"Connections of commands in the sandbox that were refused, of Runs that ended.", "namespace", "agent")
	writes = counter("deckhand_operator_writes_total",
		"Requests of the operator that change objects, by resource, verb and HTTP status code; the code is 0 if there was no answer.", "resource", "verb", "code")
)

var all = []*family{
	finished, waited, active, attemptsStarted, attemptsFailed, tokens, cost, withoutCost,
	modelCalls, requestRepairs, modelWaits, toolCalls, callErrors, refusedConnections, writes,
}

// The histograms have one label, so that their buckets stay few.
var (
	durations = histogram("deckhand_run_duration_seconds",
		"Time from the creation of a Run to its end.", []float64{1, 2, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400})
	startDelays = histogram("deckhand_run_start_delay_seconds",
		"Time from the creation of a Run to its first attempt, of Runs that ended.", []float64{0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800})
)

var histograms = []*histogramFamily{durations, startDelays}

// A Family describes a metric.
type Family struct {
	Name, Type, Help string
	Labels           []string
}

// Families returns all metrics of the package.
func Families() []Family {
	var out []Family
	for _, f := range all {
		out = append(out, f.Family)
	}
	for _, h := range histograms {
		out = append(out, h.Family)
	}
	return out
}

// A Collector serves all metrics of the package.
type Collector struct{}

// Describe implements prometheus.Collector.
func (Collector) Describe(to chan<- *prometheus.Desc) {
	for _, f := range all {
		to <- f.desc
	}
	for _, h := range histograms {
		h.vec.Describe(to)
	}
}

// Collect implements prometheus.Collector. It holds the lock of one metric while it copies its values.
func (Collector) Collect(to chan<- prometheus.Metric) {
	for _, f := range all {
		f.collect(to)
	}
	for _, h := range histograms {
		h.vec.Collect(to)
	}
}

// Register adds the metrics to the registry of the process, once.
var Register = sync.OnceFunc(func() { metrics.Registry.MustRegister(Collector{}) })
