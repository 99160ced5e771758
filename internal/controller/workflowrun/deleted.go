package workflowrun

import (
	"github.com/deckhand-dev/deckhand/internal/children"
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
func reservationsOfDeleted(w world) map[place]children.Amounts {
	out := map[place]children.Amounts{}
	main, finally := unusedBudgets(w)
	for _, at := range deletedChildren(w) {
		p, want := budgetOf(w, main, finally, at.node), wantedBy(w, main, w.program.Node(at.node))
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
