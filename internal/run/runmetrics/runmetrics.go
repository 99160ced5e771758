// Package runmetrics counts Runs for Prometheus.
//
// Counters count what this process recorded since it started. Every number is taken from a
// status that the operator writes or receives anyway: there are no requests for metrics. Names of
// Runs are never label values, and the number of namespaces, Agents and Models is bounded.
package runmetrics

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
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

// Finished counts a Run that ended, with its usage.
func Finished(run *v1alpha1.Run, reason string) {
	ns := namespaceLabel(run.Namespace)
	agent := agentLabel(ns, run)
	finished.add(1, ns, agent, reasonLabel(reason))
	if end := run.Status.CompletionTime; end != nil {
		durations.vec.WithLabelValues(ns).Observe(max(end.Sub(run.CreationTimestamp.Time).Seconds(), 0))
	}
	if start := run.Status.StartTime; start != nil {
		startDelays.vec.WithLabelValues(ns).Observe(max(start.Sub(run.CreationTimestamp.Time).Seconds(), 0))
	}
	if p := run.Status.Progress; p != nil && run.Spec.Workflow == "" {
		called(p, ns, agent)
		if !isInUsageOfParent(run) {
			used(p, ns, agent)
		}
	}
}

// isInUsageOfParent reports whether the tokens and cost of a Run are counted with the Run whose
// agent asked for it. Its calls are not.
func isInUsageOfParent(run *v1alpha1.Run) bool {
	return run.Labels[v1alpha1.LabelParentRun] != "" && metav1.GetControllerOf(run) != nil
}

// used counts the tokens and cost of a Run of an Agent. A custom runner may report any numbers: negative ones are
// ignored.
func used(p *v1alpha1.RunProgress, ns, agent string) {
	model := modelLabel(ns, agent, p.Model)
	u := p.Usage
	for kind, n := range map[string]int64{
		"Input":      u.InputTokens - u.CacheReadTokens - u.CacheWriteTokens,
		"CacheRead":  u.CacheReadTokens,
		"CacheWrite": u.CacheWriteTokens,
		"Output":     u.OutputTokens - u.ReasoningTokens,
		"Reasoning":  u.ReasoningTokens,
	} {
		tokens.add(float64(n), ns, agent, model, kind)
	}
	switch {
	case u.CostMicroUSD != nil:
		cost.add(float64(*u.CostMicroUSD)/1e6, ns, agent, model)
	case u.TotalTokens > 0:
		withoutCost.add(1, ns, agent, model)
	}
}

// called counts the calls of a Run of an Agent, and refusals.
func called(p *v1alpha1.RunProgress, ns, agent string) {
	modelCalls.add(float64(p.Counts.ModelCalls), ns, agent, modelLabel(ns, agent, p.Model))
	for result, n := range callsByResult(p) {
		toolCalls.add(float64(n), ns, agent, result)
	}
	callErrors.add(float64(p.Counts.Errors), ns, agent)
	requestRepairs.add(float64(p.Counts.Repairs), ns, agent, modelLabel(ns, agent, p.Model))
	if r := p.Refused; r != nil {
		refusedConnections.add(float64(r.Connections), ns, agent)
	}
}

// callsByResult returns the numbers of tool calls that succeeded, failed and were denied. If the numbers of a custom
// runner are inconsistent, each is at most the rest after the earlier ones.
func callsByResult(p *v1alpha1.RunProgress) map[string]int64 {
	failed := min(p.Counts.ToolErrors, p.Counts.ToolCalls)
	denied := int64(0)
	if p.Refused != nil {
		denied = min(p.Refused.ToolCalls, failed)
	}
	return map[string]int64{"Succeeded": p.Counts.ToolCalls - failed, "Failed": failed - denied, "Denied": denied}
}

// Waits counts a Run that began to wait or to retry.
func Waits(run *v1alpha1.Run, reason string) {
	ns := namespaceLabel(run.Namespace)
	waited.add(1, ns, agentLabel(ns, run), reasonLabel(reason))
}

// Attempts counts the attempts that one status has more than the status before it.
func Attempts(run *v1alpha1.Run, before, after v1alpha1.RunStatus) {
	started := attemptNumber(after) - attemptNumber(before)
	failures, disruptions := after.Failures-before.Failures, after.Disruptions-before.Disruptions
	if started <= 0 && failures <= 0 && disruptions <= 0 {
		return
	}
	ns := namespaceLabel(run.Namespace)
	agent := agentLabel(ns, run)
	attemptsStarted.add(float64(started), ns, agent)
	attemptsFailed.add(float64(failures), ns, agent, "Failure")
	attemptsFailed.add(float64(disruptions), ns, agent, "Disruption")
}

func attemptNumber(s v1alpha1.RunStatus) int32 {
	if s.Attempt == nil {
		return 0
	}
	return s.Attempt.Number
}

func countWrite(resource, verb string, code int) {
	writes.add(1, resource, verb, strconv.Itoa(code))
}

// CountWrites returns a configuration whose requests that change objects are counted.
func CountWrites(cfg *rest.Config) *rest.Config {
	out := rest.CopyConfig(cfg)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper { return writeCounter{next} })
	return out
}

type writeCounter struct{ next http.RoundTripper }

// verbs are the verbs of requests that change objects. Other requests are not counted.
var verbs = map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}

// RoundTrip implements http.RoundTripper.
func (c writeCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.next.RoundTrip(r)
	if verb := verbs[r.Method]; verb != "" {
		code := 0
		if answer != nil {
			code = answer.StatusCode
		}
		countWrite(resourceOf(r.URL.Path), verb, code)
	}
	return answer, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (c writeCounter) WrappedRoundTripper() http.RoundTripper { return c.next }

// resourceOf returns the resource, with its subresource, of a path of the API server: for example
// runs/status.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return other
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		return parts[0] + "/" + parts[2]
	}
	return parts[0]
}
