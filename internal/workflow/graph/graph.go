package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bounds of a graph.
const (
	MaxItems    = 500 // of one node
	MaxChildren = 500 // of a Run, over all nodes
	MaxNodes    = 64
)

// Kind is the kind of a node.
type Kind string

// The kinds of nodes.
const (
	Single   Kind = "Single"   // one child
	Items    Kind = "Items"    // a child for each item of a list, some at a time
	Loop     Kind = "Loop"     // one child after the other, until it is good
	Approval Kind = "Approval" // no child: a person is asked
)

// Node is one node of a Workflow.
type Node struct {
	Name  string
	Kind  Kind
	Waits []string // names of nodes; a final one waits for all that are not

	Conditional bool // it has a condition, asked by Evaluator.When
	Continue    bool // the Run goes on when it fails
	Final       bool // it is one of finally

	MaxParallel   int  // of Items: how many work at once
	MaxIterations int  // of a Loop
	Lenient       bool // of an Approval: a node uses the decision, so Denied succeeds
}

// Graph has nodes in order. It does not change and is safe for concurrent use.
type Graph struct {
	nodes []Node
	index map[string]int
	waits [][]int // by node: all that it waits for, of a final one all that are not final too
	order []int   // of nodes: each behind all that it waits for
}

// ErrTooManyNodes means that a graph has more than MaxNodes.
var ErrTooManyNodes = errors.New("too many nodes")

// A CycleError is nodes that wait for each other: each of Path waits for the next,
// and the last is the first again.
type CycleError struct{ Path []string }

func (e *CycleError) Error() string {
	return "a circle: " + strings.Join(e.Path, " waits for ")
}

// An UnknownError is a node that waits for nodes which do not exist.
type UnknownError struct {
	Node  string
	Names []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("node %s waits for %s: no such node", e.Node, strings.Join(e.Names, " and "))
}

// A FinalError is a node that waits for Final, which starts when all has ended.
type FinalError struct{ Node, Final string }

func (e *FinalError) Error() string {
	return fmt.Sprintf("node %s waits for %s, which is one of finally and starts when all others have ended", e.Node, e.Final)
}

// A DuplicateError is a name that two nodes have.
type DuplicateError struct{ Node string }

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("two nodes are called %s", e.Node)
}

// New returns the graph of nodes, which keep their order. It fails with the first DuplicateError, UnknownError,
// FinalError or CycleError in the order of the nodes, or with ErrTooManyNodes.
func New(nodes []Node) (*Graph, error) {
	if len(nodes) > MaxNodes {
		return nil, fmt.Errorf("%d of at most %d: %w", len(nodes), MaxNodes, ErrTooManyNodes)
	}
	g := &Graph{index: map[string]int{}, waits: make([][]int, len(nodes))}
	for i, n := range nodes {
		if _, there := g.index[n.Name]; there {
			return nil, &DuplicateError{n.Name}
		}
		g.index[n.Name] = i
		n.Waits = slices.Clone(n.Waits)
		g.nodes = append(g.nodes, n)
	}
	for i := range g.nodes {
		if err := g.resolve(i); err != nil {
			return nil, err
		}
	}
	if path := g.cycle(); path != nil {
		return nil, &CycleError{path}
	}
	been := map[int]bool{}
	for i := range g.nodes {
		g.sort(i, been)
	}
	return g, nil
}

// sort appends a node to the order, after all nodes that it waits for.
func (g *Graph) sort(i int, been map[int]bool) {
	if been[i] {
		return
	}
	been[i] = true
	for _, j := range g.waits[i] {
		g.sort(j, been)
	}
	g.order = append(g.order, i)
}

// resolve finds the nodes that a node waits for.
func (g *Graph) resolve(i int) error {
	n := g.nodes[i]
	var unknown []string
	for _, name := range n.Waits {
		j, there := g.index[name]
		switch {
		case !there:
			unknown = append(unknown, name)
		case g.nodes[j].Final && !n.Final:
			return &FinalError{n.Name, name}
		case !slices.Contains(g.waits[i], j):
			g.waits[i] = append(g.waits[i], j)
		}
	}
	if unknown != nil {
		return &UnknownError{n.Name, unknown}
	}
	for j, other := range g.nodes {
		if n.Final && !other.Final && !slices.Contains(g.waits[i], j) {
			g.waits[i] = append(g.waits[i], j)
		}
	}
	return nil
}

// cycle returns a cycle, from its first node in the order of the nodes back to itself, or nil.
func (g *Graph) cycle() []string {
	for i, n := range g.nodes {
		if path := g.path(i, i, map[int]bool{}); path != nil {
			return append([]string{n.Name}, path...)
		}
	}
	return nil
}

// path returns the nodes through which one node waits for another, from the second to the last; nil: it does not wait
// for it.
func (g *Graph) path(from, to int, been map[int]bool) []string {
	for _, next := range g.waits[from] {
		if next == to {
			return []string{g.nodes[to].Name}
		}
		if been[next] {
			continue
		}
		been[next] = true
		if rest := g.path(next, to, been); rest != nil {
			return append([]string{g.nodes[next].Name}, rest...)
		}
	}
	return nil
}

// Nodes returns the nodes, in order.
func (g *Graph) Nodes() []Node {
	out := slices.Clone(g.nodes)
	for i := range out {
		out[i].Waits = slices.Clone(out[i].Waits)
	}
	return out
}

// Before returns the names of all nodes that a node waits for, directly or through others, sorted.
func (g *Graph) Before(node string) []string {
	i, there := g.index[node]
	if !there {
		return nil
	}
	been := map[int]bool{}
	g.path(i, -1, been)
	var names []string
	for j := range been {
		names = append(names, g.nodes[j].Name)
	}
	slices.Sort(names)
	return names
}

// advance starts nodes that can start. If the Run ends, it ends nodes that have not ended, with the reason.
func (w *pass) advance(pieces []*node, why func() string) {
	for again := !w.seen.Paused; again && why() == ""; {
		w.evaluateReady(pieces, why)
		again = w.start(pieces, why)
	}
	if reason := why(); reason != "" {
		w.cancelRemaining(pieces, reason)
	}
}

// evaluateReady evaluates the condition of each node that waits for no other node. It repeats this until no further
// node becomes ready.
func (w *pass) evaluateReady(pieces []*node, why func() string) {
	for again := true; again; {
		again = false
		for _, p := range pieces {
			if p.State != Waiting || p.ready || !p.isReady() || why() != "" {
				continue
			}
			w.evaluateWhen(p)
			again = true
		}
	}
}

// isReady reports whether a node waits for no other node. For final nodes the others need only have ended.
func (n *node) isReady() bool {
	for _, q := range n.dependencies {
		switch {
		case q.State == Succeeded, q.State == Skipped, q.State == Failed && q.Continue:
		case n.Final && q.State.Ended():
		default:
			return false
		}
	}
	return true
}

// evaluateWhen evaluates whether a node runs. A node that waits for a reason was evaluated before.
func (w *pass) evaluateWhen(p *node) {
	if p.Conditional && p.Reason == "" {
		yes, err := w.evaluator.When(p.Name)
		if err != nil {
			w.problem(p, err)
			return
		}
		if !yes {
			p.State = Skipped
			return
		}
	}
	p.ready = true
	if p.Kind == Items && p.Total == 0 {
		w.expandItems(p)
	}
}

// expandItems evaluates how many items a node has.
func (w *pass) expandItems(p *node) {
	n, err := w.evaluator.Items(p.Name)
	room := w.childrenAllowed(p)
	switch {
	case err != nil:
		w.problem(p, err)
	case n > MaxItems:
		w.problem(p, tooManyItems(n))
	case n > room:
		w.problem(p, tooMany("%d items: the Run has room for %d more of the %d that it may have", n, max(0, room), MaxChildren))
	case n <= 0:
		p.State, p.ready = Succeeded, false
	default:
		p.Total = n
	}
}

func tooManyItems(n int) error {
	return tooMany("%d items: a node has at most %d; give it fewer", n, MaxItems)
}

func tooMany(format string, numbers ...any) error {
	return &ReasonError{ReasonTooManyItems, fmt.Errorf(format, numbers...)}
}

// childrenAllowed returns how many more children a node may have, after the needs of the other nodes.
func (w *pass) childrenAllowed(p *node) int {
	room := w.childrenLeft
	for _, q := range w.nodes {
		if q != p && q.Final == p.Final {
			room -= q.childrenNeeded()
		}
	}
	if p.Final && p.Started == 0 {
		return max(1, room)
	}
	return room
}

// childrenNeeded returns how many children a node will need at least, as far as that is known.
func (n *node) childrenNeeded() int {
	switch {
	case n.State.Ended() || n.willFail() || n.Kind == Approval:
		return 0
	case n.Kind == Items && n.Total > 0:
		return n.Total - n.Started
	case n.State == Waiting:
		return 1
	}
	return 0
}

// start creates children and requests approvals that can start now. If a node fails here and its failure ends the Run,
// all starts of this pass are undone. If another node fails, its dependents may be ready now: again is true.
func (w *pass) start(pieces []*node, why func() string) (again bool) {
	for _, p := range pieces {
		before := p.State
		w.startChildren(p)
		again = again || p.State.Ended() && !before.Ended()
		if why() == "" {
			continue
		}
		for _, q := range pieces {
			w.undo(q)
		}
		return false
	}
	for _, p := range pieces {
		if p.ready && p.Kind == Approval {
			p.State, p.ready = Running, false
		}
	}
	return again
}

// startChildren starts the children of a node, as many as may work at once.
func (w *pass) startChildren(p *node) {
	if !p.ready {
		return
	}
	if p.Kind == Approval {
		if err := w.evaluator.Input(p.Name, 0); err != nil {
			w.problem(p, err)
		}
		return
	}
	for p.active < p.parallel() && p.Started < p.limit() {
		reason, err := w.admit(p)
		switch {
		case isWaiting(reason):
			p.wait(reason)
			return
		case err != nil:
			w.undo(p)
			w.problem(p, err)
			return
		case reason != "":
			w.undo(p)
			p.fail(reason)
			return
		}
		p.State, p.Reason = Running, ""
		p.Started, p.active, p.started = p.Started+1, p.active+1, p.started+1
		w.childrenLeft--
	}
}

// admit returns why the next child of a node does not start, or an empty reason.
func (w *pass) admit(p *node) (string, error) {
	number := p.number(p.Started)
	if w.childrenAllowed(p) < 1 {
		return "", tooMany("no room for one more: a Run has at most %d", MaxChildren)
	}
	if err := w.evaluator.Input(p.Name, number); err != nil {
		return "", err
	}
	if w.seen.Admit == nil {
		return "", nil
	}
	ok, reason := w.seen.Admit(p.Name, number)
	if ok {
		return "", nil
	}
	if reason == "" {
		reason = ReasonQueued
	}
	return reason, nil
}

// wait keeps a node waiting, and sets the reason if none of its children is active.
func (n *node) wait(reason string) {
	n.ready = false
	if n.active == 0 {
		n.Reason = reason
	}
}

// undo reverts the starts of a node in this pass.
func (w *pass) undo(p *node) {
	w.childrenLeft += p.started
	p.Started, p.active, p.started, p.ready = p.Started-p.started, p.active-p.started, 0, false
	switch {
	case p.willFail():
		p.conclude()
	case p.State == Running && p.Started == 0 && p.Kind != Approval:
		p.State = Waiting
	}
}
