package main

import (
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/run/runmetrics"
)

const metricsHead = `# Metrics

The operator serves these metrics at ` + "`/metrics`" + ` of port 8080. This page is made from ` + "`internal/run/runmetrics`" + `
(` + "`make generate`" + `).

Counters count what the serving process recorded since it started: what happened while another replica was the
leader is in the metrics of that replica. Sum over pods. What a Run used is counted when the Run ends; tokens and
cost of child Runs that an agent asked for count for that agent.

The label ` + "`agent`" + ` is empty for Runs of Workflows, and ` + "`model`" + ` if no Model has answered. The first 300 namespaces,
the first 1,000 Agents and the first 1,000 pairs of an Agent and a Model that a process sees have series of their own.
All later ones have the label value ` + "`other`" + `. So have Agents without any attempt, if there are more than 20 in a
namespace: a Run may name an Agent that does not exist. No label is the name of a Run.

The process also serves the metrics of Go and of controller-runtime, for example ` + "`workqueue_depth`" + ` and
` + "`controller_runtime_reconcile_errors_total`" + `.

| name | type | labels | meaning |
|---|---|---|---|
`

// metrics writes the page of metrics.
func metrics(families []runmetrics.Family) string {
	var b strings.Builder
	b.WriteString(metricsHead)
	for _, f := range families {
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s |\n", f.Name, f.Type, strings.Join(f.Labels, "`, `"), cell(f.Help))
	}
	return b.String()
}
