package workflowrun

import (
	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/controller/run"
	"github.com/deckhand-dev/deckhand/internal/graph"
)

// deletedChildren are the places of the children that the status records and that do
// not exist. If the cache does not show all children yet, these are among them.
func deletedChildren(w world) []place {
	exist := map[place]bool{}
	for _, c := range w.children {
		exist[placeOf(c)] = true
	}
	var out []place
	for _, n := range w.nodes() {
		first := 0
		if n.Loop != nil {
			first = 1
		}
		for i := range min(stands(w, n.Name).Started, graph.MaxItems) {
			if at := (place{n.Name, first + i}); !exist[at] {
				out = append(out, at)
			}
		}
	}
	return out
}

// reservationsOfDeleted are the amounts that deleted children are charged: what was
// reserved for each. What one used after its last report nobody knows. A child without
// a limit of its own may have used all of a limit of the Workflow.
func reservationsOfDeleted(w world) map[place]amounts {
	out := map[place]amounts{}
	main, finally := wholePurses(w)
	for _, at := range deletedChildren(w) {
		p, want := purseFor(w, main, finally, at.node), wantedBy(w, main, w.program.Node(at.node))
		for d := range dimensions {
			switch whole := max(p.limit[d], 0); {
			case !p.bounded[d]:
				want[d] = 0
			case want[d] == 0 || want[d] > whole:
				want[d] = whole
			}
		}
		out[at] = want
	}
	return out
}

// addTo adds amounts to what a Run reports.
func (a amounts) addTo(p *v1alpha1.RunProgress) {
	p.Counts.Steps = run.Charged(p.Counts.Steps + a[bySteps])
	p.Usage.TotalTokens = run.Charged(p.Usage.TotalTokens + a[byTokens])
	p.Usage.DurationSeconds = run.Charged(p.Usage.DurationSeconds + a[byDuration])
	if p.Usage.CostMicroUSD != nil {
		cost := run.Charged(*p.Usage.CostMicroUSD + a[byCost])
		p.Usage.CostMicroUSD = &cost
	}
}
