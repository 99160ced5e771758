package graph_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

// Items are created in parallel, so one may exist although a quota refused one before it. The refused one starts again:
// it was not deleted.
func TestAGapBeforeAnItemThatIsNotRecordedIsStarted(t *testing.T) {
	c := set(t, list(each("a", 3)), expressions{items: map[string]int{"a": 3}})
	for _, number := range []int{0, 2} {
		c.children[graph.Start{Node: "a", Number: number}] = &graph.Child{Node: "a", Number: number}
	}
	next := c.graph.Next(c.seen(), c.evaluator)
	if diff := cmp.Diff([]string{"a/1"}, places(next.Start)); diff != "" {
		t.Errorf("starts (-want +got):\n%s", diff)
	}
	if got := next.Nodes["a"]; got.State != graph.Running || got.Reason != "" {
		t.Errorf("node a is %s %s", got.State, got.Reason)
	}
}

// An item after a gap is not left to work when the Run ends: it is stopped, and the node waits for it. Item 0 may be the
// refused one, or have ended.
func TestAnItemAfterAGapIsStoppedWithItsNode(t *testing.T) {
	for name, first := range map[string]*graph.Child{
		"the first was refused": nil,
		"the first has ended":   {Node: "a", Done: true, Succeeded: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := set(t, list(each("a", 3)), expressions{items: map[string]int{"a": 3}})
			if first != nil {
				c.children[graph.Start{Node: "a"}] = first
			}
			last := &graph.Child{Node: "a", Number: 2}
			c.children[graph.Start{Node: "a", Number: 2}] = last
			c.end = "Stopped"
			next := c.graph.Next(c.seen(), c.evaluator)
			if next.Ended || len(next.Start) > 0 || !slices.Equal(next.Cancel, []string{"a"}) {
				t.Errorf("while it works: ended %v, starts %v, cancels %v", next.Ended, next.Start, next.Cancel)
			}
			last.Done = true
			if next = c.graph.Next(c.seen(), c.evaluator); !next.Ended {
				t.Errorf("when it has ended: node a is %+v", next.Nodes["a"])
			}
		})
	}
}

// Admit is asked for what would start now and for nothing else, in order, and not
// when the prompt cannot be worked out.
func TestAdmitIsAskedInOrder(t *testing.T) {
	c := set(t, list(one("d", "a"), each("b", 2), one("a"), goOn(one("e")), each("c", 5)),
		expressions{items: map[string]int{"b": 3, "c": 4}, fails: map[string]error{"input e": errTest}})
	var asked []string
	s := c.seen()
	s.Admit = func(node string, number int) (bool, string) {
		at := place(graph.Start{Node: node, Number: number})
		asked = append(asked, at)
		return at != "c/1", ""
	}
	next := c.graph.Next(s, c.evaluator)
	if diff := cmp.Diff([]string{"b/0", "b/1", "a/0", "c/0", "c/1"}, asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b/0", "b/1", "a/0", "c/0"}, places(next.Start)); diff != "" {
		t.Errorf("starts (-want +got):\n%s", diff)
	}
}

// A condition and a list are asked for once, though their node waits long.
func TestExpressionsAreAskedOnce(t *testing.T) {
	c := set(t, list(when(one("a")), when(each("b", 2)), one("c")), expressions{items: map[string]int{"b": 2}})
	c.refuses["a"], c.refuses["b"] = graph.ReasonQueued, graph.ReasonQuotaExceeded
	for range 5 {
		c.moves()
	}
	clear(c.refuses)
	c.moves()
	for _, question := range []string{"when a", "when b", "items b"} {
		if n := c.evaluator.asked[question]; n != 1 {
			t.Errorf("%q was asked %d times", question, n)
		}
	}
	if n := c.evaluator.asked["when c"] + c.evaluator.asked["items a"]; n > 0 {
		t.Error("a node was asked for what it does not have")
	}
}

// An approval of what was not requested does not count.
func TestAnApprovalBeforeTheRequestIsIgnored(t *testing.T) {
	c := set(t, list(one("a"), ask("gate", "a")), expressions{})
	c.verdicts["gate"] = graph.Approved
	c.moves()
	c.ends("a/0", "")
	c.moves()
	if got := c.recorded["gate"].State; got != graph.Running {
		t.Errorf("it is %s, want it asked", got)
	}
}

// A Watcher sees what the look that asks it has found out so far.
type watcher struct {
	silent
	stands func(node string) graph.Status
	saw    map[string]graph.Status
}

func (w *watcher) Watch(stands func(node string) graph.Status) { w.stands = stands }

func (w *watcher) When(string) (bool, error) {
	for _, node := range []string{"a", "b", "nobody"} {
		w.saw[node] = w.stands(node)
	}
	return true, nil
}

func TestAWatcherSeesHowNodesStand(t *testing.T) {
	c := set(t, list(goOn(one("a")), one("b"), when(one("c", "a"))), expressions{})
	c.moves()
	c.ends("a/0", "Stuck")
	w := &watcher{saw: map[string]graph.Status{}}
	c.graph.Next(c.seen(), w)
	want := map[string]graph.Status{
		"a":      {State: graph.Failed, Reason: "Stuck", Total: 1, Started: 1, Failed: 1},
		"b":      {State: graph.Running, Total: 1, Started: 1},
		"nobody": {State: graph.Waiting},
	}
	if diff := cmp.Diff(want, w.saw); diff != "" {
		t.Errorf("it saw (-want +got):\n%s", diff)
	}
}

func (w *watcher) Until(string, int) (bool, error) {
	w.saw["a"] = w.stands("a")
	return true, nil
}

// After a crash a node may have to be asked that reads one which is not recorded
// to have ended, wherever that is listed.
func TestWhatIsReadIsSettledFirst(t *testing.T) {
	c := set(t, list(loop("b", 2, "a"), one("a")), expressions{})
	c.moves()
	c.ends("a/0", "")
	crash(1).do(c)
	c.ends("b/1", "")
	w := &watcher{saw: map[string]graph.Status{}}
	next := c.graph.Next(c.seen(), w)
	if got := w.saw["a"].State; got != graph.Succeeded || !next.Ended {
		t.Errorf("asked about b, it saw that a is %s", got)
	}
}

// What a Run may have is shared out before it is begun.
func TestRoom(t *testing.T) {
	refused := map[string]error{"input a/2": errTooLarge}
	for name, tc := range map[string]struct {
		nodes []graph.Node
		says  expressions
		room  int
		ends  []string // what ends, a look after each
		want  []string // starts then
	}{
		"none is left for a node":                   {list(one("a")), expressions{}, 0, nil, nil},
		"one of finally needs none":                 {list(final(one("a"))), expressions{}, 0, nil, []string{"a/0"}},
		"the items of finally do":                   {list(final(each("a", 2))), items("a", 2), 1, nil, nil},
		"an approval needs none":                    {list(each("a", 3), ask("gate", "a")), items("a", 3), 3, nil, []string{"a/0", "a/1", "a/2"}},
		"a node that is still to come needs one":    {list(each("a", 3), one("b", "a")), items("a", 3), 3, nil, nil},
		"and there it is":                           {list(each("a", 3), one("b", "a")), items("a", 3), 4, []string{"a/0", "a/1", "a/2"}, []string{"b/0"}},
		"finally does not count for the others":     {list(each("a", 3), final(one("b"))), items("a", 3), 3, nil, []string{"a/0", "a/1", "a/2"}},
		"items that have not begun were promised":   {list(each("a", 1), one("c"), each("b", 3, "c")), expressions{items: map[string]int{"a": 6, "b": 3}}, 8, []string{"c/0"}, nil},
		"unless there is more":                      {list(each("a", 1), one("c"), each("b", 3, "c")), expressions{items: map[string]int{"a": 6, "b": 3}}, 10, []string{"c/0"}, []string{"b/0", "b/1", "b/2"}},
		"what failed needs no more":                 {list(goOn(each("a", 2)), each("b", 2, "a")), expressions{items: map[string]int{"a": 4, "b": 2}, fails: refused}, 5, []string{"a/0", "a/1"}, []string{"b/0", "b/1"}},
		"nor what is going to":                      {list(goOn(each("a", 2)), one("c"), each("b", 2, "c")), expressions{items: map[string]int{"a": 3, "b": 2}, fails: refused}, 5, []string{"a/0", "c/0"}, []string{"b/0", "b/1"}},
		"an iteration needs one that is not needed": {list(loop("a", 3), one("b", "a")), expressions{}, 3, []string{"a/1"}, []string{"a/2"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := set(t, tc.nodes, tc.says)
			c.room = tc.room
			c.moves()
			for _, at := range tc.ends {
				c.ends(at, "")
				c.moves()
			}
			if diff := cmp.Diff(tc.want, places(c.next.Start)); diff != "" {
				t.Errorf("starts (-want +got):\n%s\n%v", diff, c.next.Nodes)
			}
		})
	}
}

// What it is given is not changed.
func TestNextChangesNothing(t *testing.T) {
	c := set(t, list(one("a"), each("b", 2, "a")), expressions{items: map[string]int{"b": 4}})
	c.moves()
	c.ends("a/0", "")
	s := c.seen()
	nodes, children := maps.Clone(s.Nodes), slices.Clone(s.Children)
	c.graph.Next(s, c.evaluator)
	if !maps.Equal(nodes, s.Nodes) || !slices.Equal(children, s.Children) {
		t.Error("it changed what it was given")
	}
}

// Whatever stands in a status, and whatever children there are, it answers, and
// comes to an end.
func TestNonsenseIsBorne(t *testing.T) {
	states := []graph.State{"", "Nonsense", graph.Waiting, graph.Running, graph.Succeeded, graph.Failed, graph.Skipped, graph.NotReached}
	reasons := []string{"", "Queued", "Cancelled", "Stopped", "StepLimit", "NodeFailed"}
	for seed := range uint64(plays) {
		r := random(t, seed)
		r.room = r.IntN(30) - 5
		number := func() int { return r.IntN(1200) - 600 }
		r.recorded = map[string]graph.Status{}
		for _, n := range r.nodes {
			r.recorded[n.Name] = graph.Status{
				State: states[r.IntN(len(states))], Reason: reasons[r.IntN(len(reasons))],
				Total: number(), Started: number(), Succeeded: number(), Failed: number(), Skipped: number(),
			}
		}
		s := r.seen()
		for range r.IntN(30) {
			s.Children = append(s.Children, graph.Child{
				Node: fmt.Sprintf("n%d", r.IntN(14)), Number: r.IntN(9) - 2, Done: r.percent(70), Succeeded: r.percent(50), Reason: reasons[r.IntN(len(reasons))],
			})
		}
		s.ChildrenLeft = r.room
		settles(t, r, s)
	}
}

// settles plays on from what was seen, with children that all end.
func settles(t *testing.T, r *chance, s graph.Seen) {
	t.Helper()
	for range 1000 {
		next := r.graph.Next(s, r.evaluator)
		if next.Ended {
			return
		}
		s.Nodes = next.Nodes
		for i := range s.Children {
			s.Children[i].Done = true
		}
		for _, start := range next.Start {
			s.Children = append(s.Children, graph.Child{Node: start.Node, Number: start.Number, Done: true, Succeeded: true})
		}
		s.Approvals = map[string]graph.ApprovalState{}
		for _, n := range next.Ask {
			s.Approvals[n] = graph.Denied
		}
	}
	t.Fatalf("it does not end: %v", s.Nodes)
}

// The largest Run that there may be: 64 nodes, 500 children, half of them failed.
func BenchmarkNext(b *testing.B) {
	nodes := []graph.Node{goOn(each("check", graph.MaxItems))}
	for i := 1; i < graph.MaxNodes; i++ {
		n := one(fmt.Sprintf("n%d", i))
		for j := range min(i, 8) {
			n.Waits = append(n.Waits, nodes[i-1-j].Name)
		}
		nodes = append(nodes, n)
	}
	g, err := graph.New(nodes)
	if err != nil {
		b.Fatal(err)
	}
	s := graph.Seen{
		Nodes: map[string]graph.Status{"check": {State: graph.Running, Total: graph.MaxItems, Started: graph.MaxItems}},
	}
	for i := range graph.MaxItems {
		s.Children = append(s.Children, graph.Child{Node: "check", Number: i, Done: i > 0, Succeeded: i%2 == 0, Reason: "StepLimit"})
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(s.Children), func(i, j int) { s.Children[i], s.Children[j] = s.Children[j], s.Children[i] })
	o := &expressions{asked: map[string]int{}}
	b.ReportAllocs()
	for b.Loop() {
		g.Next(s, o)
	}
}

// The same where all of them start at once.
func BenchmarkNextStarts(b *testing.B) {
	nodes := []graph.Node{each("check", graph.MaxItems)}
	for i := 1; i < graph.MaxNodes; i++ {
		nodes = append(nodes, final(one(fmt.Sprintf("n%d", i))))
	}
	g, err := graph.New(nodes)
	if err != nil {
		b.Fatal(err)
	}
	o := silent{}
	b.ReportAllocs()
	for b.Loop() {
		if n := len(g.Next(graph.Seen{ChildrenLeft: graph.MaxChildren}, o).Start); n != graph.MaxItems {
			b.Fatalf("%d start", n)
		}
	}
}

// silent is an Evaluator that costs nothing.
type silent struct{}

func (silent) When(string) (bool, error)       { return true, nil }
func (silent) Items(string) (int, error)       { return graph.MaxItems, nil }
func (silent) Until(string, int) (bool, error) { return true, nil }
func (silent) Input(string, int) error         { return nil }
