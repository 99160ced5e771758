// Package bench measures the whole on the real cluster of KUBECONFIG, with
// Deckhand installed: `make bench-cluster`. It asserts nothing; its figures are
// ratios taken in one run, and docs/performance.md says what they were.
package bench

import (
	"fmt"
	"slices"

	eventsv1 "k8s.io/api/events/v1"
)

// settlements returns how often the operator settled each Run, by name: the occurrences of
// its events with the action Settle. All events are of one namespace.
func settlements(events []eventsv1.Event) map[string]int {
	counts := map[string]int{}
	for i := range events {
		e := &events[i]
		if e.Regarding.Kind != "Run" || e.Action != "Settle" {
			continue
		}
		occurrences := 1
		if e.Series != nil {
			occurrences = int(e.Series.Count)
		}
		counts[e.Regarding.Name] += occurrences
	}
	return counts
}

// notSettledOnce lists the Runs that were not settled exactly once, and how often they
// were.
func notSettledOnce(runs []string, counts map[string]int) []string {
	var out []string
	for _, run := range slices.Sorted(slices.Values(runs)) {
		if n := counts[run]; n != 1 {
			out = append(out, fmt.Sprintf("%s: %d times", run, n))
		}
	}
	return out
}
