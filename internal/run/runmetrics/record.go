package runmetrics

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// Finished counts a Run that ended, with what it used.
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

// used counts the tokens and cost of a Run of an Agent. A custom runner may report any numbers:
// what is less than zero is not counted.
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

// called counts the calls of a Run of an Agent, and what was refused.
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

// callsByResult returns the numbers of tool calls that succeeded, failed and were denied. The report
// of a custom runner may not add up: then each number is the most that those before it leave.
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
