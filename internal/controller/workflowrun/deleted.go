package workflowrun

import (
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

// deletedChildren returns the keys of recorded children that do not exist. If the cache does not show all children yet,
// those are included.
func deletedChildren(s state) []childKey {
	exist := map[childKey]bool{}
	for _, c := range s.children {
		exist[keyOf(c)] = true
	}
	var out []childKey
	for _, n := range s.nodes() {
		first := 0
		if n.Loop != nil {
			first = 1
		}
		for i := range min(recordedState(s, n.Name).Started, graph.MaxItems) {
			if at := (childKey{n.Name, first + i}); !exist[at] {
				out = append(out, at)
			}
		}
	}
	return out
}

// reservationsOfDeleted returns what deleted children are charged: their reservation, since their usage after the last
// report is not known. A child without its own limit may have used all of the Workflow's limit.
func reservationsOfDeleted(s state) map[childKey]children.Amounts {
	out := map[childKey]children.Amounts{}
	main, finally := unusedBudgets(s)
	for _, at := range deletedChildren(s) {
		p, want := budgetOf(s, main, finally, at.node), wantedBy(s, main, s.program.Node(at.node))
		for d := range children.Resources {
			switch whole := max(p.Limit[d], 0); {
			case !p.Bounded[d]:
				want[d] = 0
			case want[d] == 0 || want[d] > whole:
				want[d] = whole
			}
		}
		out[at] = want
	}
	return out
}
