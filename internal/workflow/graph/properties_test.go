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

func (r *chance) percent(n int) bool { return r.IntN(100) < n }

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
func (r *chance) befalls() {
	working := r.working()
	if len(working) > 0 && r.percent(80) {
		s := working[r.IntN(len(working))]
		r.ends(place(s), r.reason(s.Node))
	}
	if open := r.next.Ask; len(open) > 0 && (len(working) == 0 || r.percent(30)) {
		r.verdicts[open[r.IntN(len(open))]] = []graph.ApprovalState{graph.Approved, graph.Approved, graph.Denied, graph.Expired, graph.Open}[r.IntN(5)]
	}
	if !r.calm {
		r.meddles(working)
	}
}

// reason is why a child fails; empty: it does not.
func (r *chance) reason(node string) string {
	bad, stops := r.percent(25), slices.Contains(r.next.Cancel, node)
	switch {
	case bad && !r.calm:
		return []string{"StepLimit", "Stopped", "TokenLimit"}[r.IntN(3)]
	case stops:
		return "Stopped"
	case bad:
		return "StepLimit"
	}
	return ""
}

// meddles is what people and limits do.
func (r *chance) meddles(working []graph.Start) {
	switch {
	case r.percent(3):
		if r.end == "" {
			r.end = []string{"Stopped", "TokenLimit", "DeadlineExceeded"}[r.IntN(3)]
		}
	case r.percent(2):
		r.finallyEnd = "DurationLimit"
	case r.percent(5):
		r.paused = !r.paused
	case r.percent(2) && len(working) > 0:
		delete(r.children, working[r.IntN(len(working))])
	case r.percent(10):
		r.refuses[r.nodes[r.IntN(len(r.nodes))].Name] = graph.ReasonQueued
	case r.percent(1):
		r.refuses[r.nodes[r.IntN(len(r.nodes))].Name] = "RunRefused"
	case r.percent(30):
		clear(r.refuses)
	}
}

// play plays a graph to its end, with what must hold at every look.
func (r *chance) play(look func()) {
	for step := range 2000 {
		if step == 300 { // by then people leave it alone
			r.calm, r.paused = true, false
			clear(r.refuses)
		}
		look()
		if len(r.recorded) > 0 && maps.Equal(r.recorded, r.next.Nodes) {
			r.holds()
		}
		if r.next.Ended {
			return
		}
		r.befalls()
	}
	r.t.Fatalf("it does not end: %v", r.recorded)
}

// holds is what must be so after each look.
func (r *chance) holds() {
	r.t.Helper()
	works := map[string]int{}
	for _, s := range r.working() {
		works[s.Node]++
	}
	for _, n := range r.nodes {
		now := r.next.Nodes[n.Name]
		if before, ended := r.ended[n.Name]; ended && now != before {
			r.t.Fatalf("%s had ended %v and is %v", n.Name, before, now)
		}
		if now.State.Ended() {
			r.ended[n.Name] = now
		}
		r.counts(n, now)
		if most := max(1, n.MaxParallel); n.Kind == graph.Items && works[n.Name] > most || n.Kind != graph.Items && works[n.Name] > 1 {
			r.t.Fatalf("%d Runs of %s work at once", works[n.Name], n.Name)
		}
		if began := now.Started > 0 || n.Kind == graph.Approval && now.State == graph.Running; began && !r.first[n.Name] {
			r.first[n.Name] = true
			r.inTurn(n)
		}
	}
	if r.next.Ended {
		r.checkEnd()
	}
}

// counts is what must hold of numbers.
func (r *chance) counts(n graph.Node, s graph.Status) {
	r.t.Helper()
	done := s.Succeeded + s.Failed + s.Skipped
	if s.Started > s.Total || done > s.Total || s.State.Ended() && done != s.Total {
		r.t.Fatalf("%s does not add up: %+v", n.Name, s)
	}
	if (s.State == graph.Skipped || s.State == graph.NotReached) && s.Total > 0 {
		r.t.Fatalf("%s had Runs and is %s", n.Name, s.State)
	}
	if yes := !n.Conditional || !slices.Contains(r.evaluator.not, n.Name); yes && s.State == graph.Skipped {
		r.t.Fatalf("%s is skipped, which its condition does not say", n.Name)
	}
}

// inTurn is what must be so when a node begins.
func (r *chance) inTurn(n graph.Node) {
	r.t.Helper()
	for _, other := range r.nodes {
		s := r.next.Nodes[other.Name].State
		waits := slices.Contains(n.Waits, other.Name) || n.Final && !other.Final
		done := s == graph.Succeeded || s == graph.Skipped || s == graph.Failed && other.Continue || n.Final && s.Ended()
		if waits && !done {
			r.t.Fatalf("%s begins though %s is %s", n.Name, other.Name, s)
		}
	}
}

// checkEnd checks what must hold of the end.
func (r *chance) checkEnd() {
	r.t.Helper()
	if len(r.working()) > 0 {
		r.t.Fatalf("it ended, and %v work", r.working())
	}
	bad := false
	for _, n := range r.nodes {
		s := r.next.Nodes[n.Name]
		bad = bad || !n.Final && (s.State == graph.NotReached || s.State == graph.Failed && !n.Continue)
		if s.State == graph.NotReached && n.Final && s.Reason != r.finallyEnd {
			r.t.Fatalf("%s of finally was not reached", n.Name)
		}
	}
	switch r.next.Reason {
	case "":
		if bad {
			r.t.Fatalf("it ended well: %v", r.next.Nodes)
		}
	case graph.ReasonNodeFailed:
		if s, ok := r.next.Nodes[r.next.Failed]; !ok || s.State != graph.Failed {
			r.t.Fatalf("it ended because %q failed, which is %v", r.next.Failed, s)
		}
	case r.end:
	default:
		r.t.Fatalf("it ended %s, want %s", r.next.Reason, r.end)
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
