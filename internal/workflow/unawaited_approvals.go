package workflow

import (
	"slices"

	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

// UnawaitedApprovals returns the approvals that no node waits for although other nodes
// start without them, whatever is decided.
func (p *Program) UnawaitedApprovals() []string {
	waitedFor := map[string]bool{}
	nodes := p.Graph.Nodes()
	for _, n := range nodes {
		for _, before := range n.Waits {
			waitedFor[before] = waitedFor[before] || !n.Final
		}
	}
	var out []string
	for _, n := range nodes {
		if n.Kind == graph.Approval && !waitedFor[n.Name] && p.hasUnrelatedWork(n.Name) {
			out = append(out, n.Name)
		}
	}
	return out
}

// hasUnrelatedWork reports whether a child Run may start that is not a dependency of a node.
func (p *Program) hasUnrelatedWork(name string) bool {
	before := p.Graph.Before(name)
	return slices.ContainsFunc(p.Graph.Nodes(), func(n graph.Node) bool {
		return n.Kind != graph.Approval && !n.Final && !slices.Contains(before, n.Name)
	})
}
