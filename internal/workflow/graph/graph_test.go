package graph_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

func TestWhatIsNoGraph(t *testing.T) {
	many := make([]graph.Node, graph.MaxNodes+1)
	for i := range many {
		many[i] = one(fmt.Sprintf("n%d", i))
	}
	for name, tc := range map[string]struct {
		nodes []graph.Node
		want  string
	}{
		"no node":                           {nil, ""},
		"one node":                          {list(one("a")), ""},
		"a node that waits twice":           {list(one("a"), one("b", "a", "a")), ""},
		"a node that waits for itself":      {list(one("a"), one("b", "b")), "a circle: b waits for b"},
		"two that wait for each other":      {list(one("a", "b"), one("b", "a")), "a circle: a waits for b waits for a"},
		"a circle behind others":            {list(one("a", "c"), one("b", "c"), one("c", "d"), one("d", "e"), one("e", "c")), "a circle: c waits for d waits for e waits for c"},
		"a circle beside a way out":         {list(one("a", "z", "b"), one("z"), one("b", "z", "a")), "a circle: a waits for b waits for a"},
		"a circle in finally":               {list(one("a"), final(one("f", "g")), final(one("g", "f"))), "a circle: f waits for g waits for f"},
		"a node that is not there":          {list(one("a", "x")), "node a waits for x: no such node"},
		"two that are not there":            {list(one("a", "x", "b", "y"), one("b")), "node a waits for x and y: no such node"},
		"a node that waits for finally":     {list(one("a", "f"), final(one("f"))), "node a waits for f, which is one of finally and starts when all others have ended"},
		"finally waits for others":          {list(one("a"), final(one("f", "a")), final(one("g", "f"))), ""},
		"two nodes of one name":             {list(one("a"), final(one("a"))), "two nodes are called a"},
		"more than 64 nodes":                {many, "65 of at most 64: too many nodes"},
		"the first fault in order is named": {list(one("a", "a"), one("b", "x")), "node b waits for x: no such node"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := graph.New(tc.nodes)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Whoever tells people has what went wrong as it is.
func TestErrorsHoldWhatTheyName(t *testing.T) {
	_, err := graph.New(list(one("a", "b"), one("b", "a")))
	if e, ok := errors.AsType[*graph.CycleError](err); !ok || !cmp.Equal(e.Path, []string{"a", "b", "a"}) {
		t.Errorf("got %#v", err)
	}
	_, err = graph.New(list(one("a", "x", "a", "y")))
	if e, ok := errors.AsType[*graph.UnknownError](err); !ok || e.Node != "a" || !cmp.Equal(e.Names, []string{"x", "y"}) {
		t.Errorf("got %#v", err)
	}
	_, err = graph.New(list(one("a", "f"), final(one("f"))))
	if e, ok := errors.AsType[*graph.FinalError](err); !ok || *e != (graph.FinalError{Node: "a", Final: "f"}) {
		t.Errorf("got %#v", err)
	}
}

func TestBefore(t *testing.T) {
	g, err := graph.New(list(one("d", "c"), one("c", "b", "a"), one("b", "a"), one("a"), one("z"), final(one("g", "f")), final(one("f", "a"))))
	if err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string][]string{
		"a": nil, "b": {"a"}, "c": {"a", "b"}, "d": {"a", "b", "c"},
		"f": {"a", "b", "c", "d", "z"}, "g": {"a", "b", "c", "d", "f", "z"}, "nobody": nil,
	} {
		if diff := cmp.Diff(want, g.Before(node)); diff != "" {
			t.Errorf("before %s (-want +got):\n%s", node, diff)
		}
	}
}

// A graph is fixed: what it was made of and what it gives may be changed.
func TestAGraphDoesNotChange(t *testing.T) {
	nodes := list(one("a"), one("b", "a"))
	g, err := graph.New(nodes)
	if err != nil {
		t.Fatal(err)
	}
	nodes[1].Waits[0], g.Nodes()[1].Waits[0], g.Nodes()[0].Name = "x", "y", "z"
	if diff := cmp.Diff(list(one("a"), one("b", "a")), g.Nodes()); diff != "" {
		t.Errorf("it changed (-want +got):\n%s", diff)
	}
}
