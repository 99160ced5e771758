package graph_test

import (
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

// one is a node with one child, which waits for others.
func one(name string, waits ...string) graph.Node {
	return graph.Node{Name: name, Kind: graph.Single, Waits: waits}
}

func each(name string, parallel int, waits ...string) graph.Node {
	return graph.Node{Name: name, Kind: graph.Items, MaxParallel: parallel, Waits: waits}
}

func loop(name string, most int, waits ...string) graph.Node {
	return graph.Node{Name: name, Kind: graph.Loop, MaxIterations: most, Waits: waits}
}

func ask(name string, waits ...string) graph.Node {
	return graph.Node{Name: name, Kind: graph.Approval, Waits: waits}
}

func when(n graph.Node) graph.Node { n.Conditional = true; return n }

func goOn(n graph.Node) graph.Node { n.Continue = true; return n }

func final(n graph.Node) graph.Node { n.Final = true; return n }

func lenient(n graph.Node) graph.Node { n.Lenient = true; return n }

func list(n ...graph.Node) []graph.Node { return n }
