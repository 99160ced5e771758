package graph_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

var errTest = errors.New("no such key: score (nodes.a.output.score)")

// expressions are what an Evaluator says: of each node whether its condition holds,
// how many items it has, the iteration that is good, and what fails, by the
// question and the node ("when a").
type expressions struct {
	not   []string
	items map[string]int
	good  map[string]int
	fails map[string]error
	asked map[string]int
}

func (e *expressions) ask(question, node string) error {
	e.asked[question+" "+node]++
	return e.fails[question+" "+node]
}

func (e *expressions) When(node string) (bool, error) {
	return !slices.Contains(e.not, node), e.ask("when", node)
}

func (e *expressions) Items(node string) (int, error) { return e.items[node], e.ask("items", node) }

func (e *expressions) Until(node string, iteration int) (bool, error) {
	return iteration == e.good[node], e.ask("until", node)
}

func (e *expressions) Input(node string, number int) error {
	return errors.Join(e.ask("input", node), e.ask("input", place(graph.Start{Node: node, Number: number})))
}

// A cluster is where a graph is played: it makes what starts, once, and remembers
// what is recorded.
type cluster struct {
	t         *testing.T
	nodes     []graph.Node
	graph     *graph.Graph
	evaluator *expressions
	recorded  map[string]graph.Status
	children  map[graph.Start]*graph.Child
	made      map[graph.Start]bool // ever
	verdicts  map[string]graph.ApprovalState
	refuses   map[string]string // place or node → why it is not admitted

	end, finallyEnd string
	paused          bool
	room            int

	next graph.Next
	log  strings.Builder
}

func set(t *testing.T, nodes []graph.Node, e expressions) *cluster {
	t.Helper()
	g, err := graph.New(nodes)
	if err != nil {
		t.Fatal(err)
	}
	e.asked = map[string]int{}
	return &cluster{
		t: t, nodes: nodes, graph: g, evaluator: &e, room: graph.MaxChildren,
		children: map[graph.Start]*graph.Child{}, made: map[graph.Start]bool{},
		verdicts: map[string]graph.ApprovalState{}, refuses: map[string]string{},
	}
}

// seen is what there is to see.
func (c *cluster) seen() graph.Seen {
	s := graph.Seen{
		Nodes: c.recorded, Approvals: c.verdicts, End: c.end, FinallyEnd: c.finallyEnd,
		Paused: c.paused, ChildrenLeft: c.room - len(c.made), Admit: c.admit,
	}
	for _, child := range c.children {
		s.Children = append(s.Children, *child)
	}
	return s
}

func (c *cluster) admit(node string, number int) (bool, string) {
	for _, key := range []string{node, place(graph.Start{Node: node, Number: number})} {
		if reason, refused := c.refuses[key]; refused {
			return false, reason
		}
	}
	return true, ""
}

// look asks what comes next.
func (c *cluster) look() graph.Next { return c.graph.Next(c.seen(), c.evaluator) }

// makes makes the first few of what starts.
func (c *cluster) makes(starts []graph.Start) {
	c.t.Helper()
	for _, s := range starts {
		if c.made[s] {
			c.t.Fatalf("%s is made twice", place(s))
		}
		c.made[s] = true
		c.children[s] = &graph.Child{Node: s.Node, Number: s.Number, Reason: "Running"}
	}
}

// moves looks, makes what starts and records it.
func (c *cluster) moves() {
	c.t.Helper()
	c.next = c.look()
	c.makes(c.next.Start)
	c.recorded = maps.Clone(c.next.Nodes)
}

// ends ends a child that works.
func (c *cluster) ends(at, reason string) {
	c.t.Helper()
	for s, child := range c.children {
		if place(s) == at && !child.Done {
			child.Done, child.Succeeded, child.Reason = true, reason == "", cmp.Or(reason, "Finished")
			return
		}
	}
	c.t.Fatalf("%s does not work", at)
}

// working are the children that work, in order.
func (c *cluster) working() []graph.Start {
	var out []graph.Start
	for s, child := range c.children {
		if !child.Done {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b graph.Start) int {
		if a.Node != b.Node {
			return strings.Compare(a.Node, b.Node)
		}
		return a.Number - b.Number
	})
	return out
}

// place is how a child is called here.
func place(s graph.Start) string { return fmt.Sprintf("%s/%d", s.Node, s.Number) }
