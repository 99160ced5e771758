package graph_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

const plays = 1000

// A chance is a random graph, and what befalls it.
type chance struct {
	*rand.Rand
	*cluster
	ended map[string]graph.Status // as they ended
	first map[string]bool         // nodes of which something began
	calm  bool                    // nobody meddles any more
}

func (c *chance) percent(n int) bool { return c.IntN(100) < n }

// random is a graph of at most 12 nodes that wait for nodes before them, in any
// order, and what its expressions say.
func random(t *testing.T, seed uint64) *chance {
	t.Helper()
	r := &chance{Rand: rand.New(rand.NewPCG(seed, 5)), ended: map[string]graph.Status{}, first: map[string]bool{}}
	says := expressions{items: map[string]int{}, good: map[string]int{}, fails: map[string]error{}}
	kinds := []graph.Kind{graph.Single, graph.Single, graph.Items, graph.Loop, graph.Approval}
	var nodes []graph.Node
	for i := range 1 + r.IntN(12) {
		n := graph.Node{
			Name: fmt.Sprintf("n%d", i), Kind: kinds[r.IntN(len(kinds))], Conditional: r.percent(20), Continue: r.percent(40),
			Final: r.percent(15), Lenient: r.percent(30), MaxParallel: 1 + r.IntN(3), MaxIterations: 1 + r.IntN(4),
		}
		for _, other := range nodes {
			if r.percent(30) && (n.Final || !other.Final) {
				n.Waits = append(n.Waits, other.Name)
			}
		}
		nodes = append(nodes, n)
		says.items[n.Name], says.good[n.Name] = r.IntN(7), 1+r.IntN(5)
		if r.percent(30) {
			says.not = append(says.not, n.Name)
		}
		if question := []string{"when ", "items ", "until ", "input "}[r.IntN(4)]; r.percent(4) {
			says.fails[question+n.Name] = errTest
		}
	}
	r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	r.cluster = set(t, nodes, says)
	return r
}

// befalls lets one thing happen.
func (c *chance) befalls() {
	working := c.working()
	if len(working) > 0 && c.percent(80) {
		s := working[c.IntN(len(working))]
		c.ends(place(s), c.reason(s.Node))
	}
	if open := c.next.Ask; len(open) > 0 && (len(working) == 0 || c.percent(30)) {
		c.verdicts[open[c.IntN(len(open))]] = []graph.ApprovalState{graph.Approved, graph.Approved, graph.Denied, graph.Expired, graph.Open}[c.IntN(5)]
	}
	if !c.calm {
		c.meddles(working)
	}
}

// reason is why a child fails; empty: it does not.
func (c *chance) reason(node string) string {
	bad, stops := c.percent(25), slices.Contains(c.next.Cancel, node)
	switch {
	case bad && !c.calm:
		return []string{"StepLimit", "Stopped", "TokenLimit"}[c.IntN(3)]
	case stops:
		return "Stopped"
	case bad:
		return "StepLimit"
	}
	return ""
}

// meddles is what people and limits do.
func (c *chance) meddles(working []graph.Start) {
	switch {
	case c.percent(3):
		if c.end == "" {
			c.end = []string{"Stopped", "TokenLimit", "DeadlineExceeded"}[c.IntN(3)]
		}
	case c.percent(2):
		c.finallyEnd = "DurationLimit"
	case c.percent(5):
		c.paused = !c.paused
	case c.percent(2) && len(working) > 0:
		delete(c.children, working[c.IntN(len(working))])
	case c.percent(10):
		c.refuses[c.nodes[c.IntN(len(c.nodes))].Name] = graph.ReasonQueued
	case c.percent(1):
		c.refuses[c.nodes[c.IntN(len(c.nodes))].Name] = "RunRefused"
	case c.percent(30):
		clear(c.refuses)
	}
}

// play plays a graph to its end, with what must hold at every look.
func (c *chance) play(look func()) {
	for step := range 2000 {
		if step == 300 { // by then people leave it alone
			c.calm, c.paused = true, false
			clear(c.refuses)
		}
		look()
		if len(c.recorded) > 0 && maps.Equal(c.recorded, c.next.Nodes) {
			c.holds()
		}
		if c.next.Ended {
			return
		}
		c.befalls()
	}
	c.t.Fatalf("it does not end: %v", c.recorded)
}

// holds is what must be so after each look.
func (c *chance) holds() {
	c.t.Helper()
	works := map[string]int{}
	for _, s := range c.working() {
		works[s.Node]++
	}
	for _, n := range c.nodes {
		now := c.next.Nodes[n.Name]
		if before, ended := c.ended[n.Name]; ended && now != before {
			c.t.Fatalf("%s had ended %v and is %v", n.Name, before, now)
		}
		if now.State.Ended() {
			c.ended[n.Name] = now
		}
		c.counts(n, now)
		if most := max(1, n.MaxParallel); n.Kind == graph.Items && works[n.Name] > most || n.Kind != graph.Items && works[n.Name] > 1 {
			c.t.Fatalf("%d Runs of %s work at once", works[n.Name], n.Name)
		}
		if began := now.Started > 0 || n.Kind == graph.Approval && now.State == graph.Running; began && !c.first[n.Name] {
			c.first[n.Name] = true
			c.inTurn(n)
		}
	}
	if c.next.Ended {
		c.checkEnd()
	}
}

// counts is what must hold of numbers.
func (c *chance) counts(n graph.Node, s graph.Status) {
	c.t.Helper()
	done := s.Succeeded + s.Failed + s.Skipped
	if s.Started > s.Total || done > s.Total || s.State.Ended() && done != s.Total {
		c.t.Fatalf("%s does not add up: %+v", n.Name, s)
	}
	if (s.State == graph.Skipped || s.State == graph.NotReached) && s.Total > 0 {
		c.t.Fatalf("%s had Runs and is %s", n.Name, s.State)
	}
	if yes := !n.Conditional || !slices.Contains(c.evaluator.not, n.Name); yes && s.State == graph.Skipped {
		c.t.Fatalf("%s is skipped, which its condition does not say", n.Name)
	}
}

// inTurn is what must be so when a node begins.
func (c *chance) inTurn(n graph.Node) {
	c.t.Helper()
	for _, other := range c.nodes {
		s := c.next.Nodes[other.Name].State
		waits := slices.Contains(n.Waits, other.Name) || n.Final && !other.Final
		done := s == graph.Succeeded || s == graph.Skipped || s == graph.Failed && other.Continue || n.Final && s.Ended()
		if waits && !done {
			c.t.Fatalf("%s begins though %s is %s", n.Name, other.Name, s)
		}
	}
}

// checkEnd checks what must hold of the end.
func (c *chance) checkEnd() {
	c.t.Helper()
	if len(c.working()) > 0 {
		c.t.Fatalf("it ended, and %v work", c.working())
	}
	bad := false
	for _, n := range c.nodes {
		s := c.next.Nodes[n.Name]
		bad = bad || !n.Final && (s.State == graph.NotReached || s.State == graph.Failed && !n.Continue)
		if s.State == graph.NotReached && n.Final && s.Reason != c.finallyEnd {
			c.t.Fatalf("%s of finally was not reached", n.Name)
		}
	}
	switch c.next.Reason {
	case "":
		if bad {
			c.t.Fatalf("it ended well: %v", c.next.Nodes)
		}
	case graph.ReasonNodeFailed:
		if s, ok := c.next.Nodes[c.next.Failed]; !ok || s.State != graph.Failed {
			c.t.Fatalf("it ended because %q failed, which is %v", c.next.Failed, s)
		}
	case c.end:
	default:
		c.t.Fatalf("it ended %s, want %s", c.next.Reason, c.end)
	}
}

// Whatever befalls a graph: it ends, nothing is started twice or out of turn, and
// what has ended stays as it is.
func TestEveryGraphEnds(t *testing.T) {
	for seed := range uint64(plays) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := random(t, seed)
			r.play(r.moves)
		})
	}
}

// What Next says is said again when it is asked again, whether or not it was
// recorded, and wherever between making and recording the operator crashed.
func TestEveryLookBearsACrash(t *testing.T) {
	for seed := range uint64(plays) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := random(t, seed)
			r.play(func() {
				before := r.recorded
				first := r.look()
				cut := 0
				if n := len(first.Start); n > 0 {
					cut = r.IntN(n + 1)
				}
				r.makes(first.Start[:cut])
				second := r.look() // recorded nothing
				if diff := cmp.Diff(first.Start[cut:], second.Start, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("it starts something else after a crash (-want +got):\n%s", diff)
				}
				r.makes(second.Start)
				same(t, before, first, second)
				r.next, r.recorded = second, maps.Clone(second.Nodes)
				third := r.look() // recorded all
				if len(third.Start) > 0 {
					t.Fatalf("it starts %v more when asked again", third.Start)
				}
				same(t, before, second, third)
			})
		})
	}
}

func same(t *testing.T, recorded map[string]graph.Status, want, got graph.Next) {
	t.Helper()
	ignored := cmpopts.IgnoreFields(graph.Next{}, "Start", "Problems")
	if diff := cmp.Diff(want, got, ignored, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("asked again, it says something else (-want +got):\n%s\nrecorded before: %v", diff, recorded)
	}
}

// A crash after any look, and a child that ends before the next, changes nothing of
// how nodes end that have children. (What was only decided, as that a node is
// skipped, and not recorded, is decided anew.)
func TestACrashChangesNoEnd(t *testing.T) {
	for seed := range uint64(plays / 10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			want, looks := crashed(t, seed, -1)
			for at := range looks {
				got, _ := crashed(t, seed, at)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("a crash after look %d changes the end (-want +got):\n%s", at, diff)
				}
			}
		})
	}
}

// crashed are the states in which the nodes end when the operator crashes after a
// look, having made what starts and recorded nothing.
func crashed(t *testing.T, seed uint64, at int) (states map[string]graph.State, looks int) {
	t.Helper()
	r := random(t, seed)
	r.calm = true
	nodes := r.nodes
	for i := range nodes {
		nodes[i].Conditional = false
		if nodes[i].Kind == graph.Approval {
			nodes[i].Kind = graph.Single
		}
		r.evaluator.items[nodes[i].Name]++
	}
	r.evaluator.fails = nil
	r.graph = set(t, nodes, *r.evaluator).graph
	r.play(func() {
		before := r.recorded
		r.moves()
		if looks == at && !r.next.Ended {
			r.recorded = before
		}
		looks++
	})
	states = map[string]graph.State{}
	for name, s := range r.next.Nodes {
		states[name] = s.State
	}
	return states, looks
}
