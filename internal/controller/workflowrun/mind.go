package workflowrun

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/graph"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// A mind answers what the graph asks of expressions, by what the children said.
// It is asked about a node when all that it reads has ended.
type mind struct {
	world

	stands   func(node string) graph.Status // by now
	values   workflow.Values
	at       map[string]graph.Status // of the nodes among values
	byPlace  map[place]*v1alpha1.Run
	items    map[string][]json.RawMessage
	inputs   map[place]input
	problems map[string]problem // of nodes, the last one
}

// A problem is why a node fails, or would, before it has a child that says so.
type problem struct{ reason, text string }

// An input is what a child is given.
type input struct {
	prompt string
	input  json.RawMessage
}

// newMind knows what the status remembers. Why the Run ends, finally reads.
func newMind(w world, end, told string) *mind {
	m := &mind{
		world:    w,
		at:       map[string]graph.Status{},
		byPlace:  map[place]*v1alpha1.Run{},
		items:    map[string][]json.RawMessage{},
		inputs:   map[place]input{},
		problems: map[string]problem{},
	}
	m.stands = func(node string) graph.Status { return stands(w, node) }
	if had := w.recorded(); had != nil {
		end, told = had.Reason, had.Message
	}
	m.values = workflow.Values{
		Run:   workflow.RunValues{Namespace: w.run.Namespace, Name: w.run.Name, UID: string(w.run.UID), Reason: end, Message: told},
		Nodes: map[string]workflow.NodeValue{},
	}
	m.values.Input, _ = w.program.Input(given(w.run)) // it fitted when the Run began
	for _, c := range w.children {
		m.byPlace[placeOf(c)] = c
	}
	return m
}

// Watch is how the graph shows how nodes stand.
func (m *mind) Watch(stands func(node string) graph.Status) { m.stands = stands }

// known is all that expressions read, as it is by now.
func (m *mind) known() workflow.Values {
	for _, n := range m.nodes() {
		s := m.stands(n.Name)
		if had, known := m.at[n.Name]; known && had == s {
			continue
		}
		m.at[n.Name], m.values.Nodes[n.Name] = s, m.valueOf(n, s)
	}
	v := m.values
	if v.Run.Reason != "" {
		return v
	}
	v.Run.Reason = v1alpha1.ReasonFinished // to finally, which begins when all has ended
	if node := m.culprit(); node != "" {
		v.Run.Reason, v.Run.Message = v1alpha1.ReasonNodeFailed, m.explain(node)
	}
	return v
}

// culprit is the first node whose failure ends the Run; empty: none does. One that
// fails because its Runs were stopped, with the Run, is none.
func (m *mind) culprit() string {
	for _, n := range m.version.Spec.Nodes {
		s := m.stands(n.Name)
		failing := s.State == graph.Failed || s.State == graph.Running && s.Reason != "" && s.Reason != graph.ReasonQueued && s.Reason != graph.ReasonQuotaExceeded
		if failing && s.Reason != graph.ReasonCancelled && n.OnFailure != v1alpha1.OnFailureContinue {
			return n.Name
		}
	}
	return ""
}

// valueOf is a node as expressions read it.
func (m *mind) valueOf(n v1alpha1.Node, s graph.Status) workflow.NodeValue {
	node := n.Name
	v := workflow.NodeValue{State: s.State, Counts: s}
	switch {
	case n.Approval != nil:
		if s.State == graph.Succeeded || s.State == graph.Failed {
			v.Output = m.ruling(node)
		}
		return v
	case !s.State.Ended(): // what reads it waits for it
		return v
	case n.ForEach != nil:
		v.Items = make([]workflow.NodeValue, s.Total)
		for i := range v.Items {
			v.Items[i] = turnOf(m.child(place{node, i}))
			if v.Deleted == "" && i < s.Started {
				v.Deleted = m.deleted(n, i)
			}
		}
		return v
	}
	number := 0
	if n.Loop != nil {
		number = s.Started
	}
	last := turnOf(m.child(place{node, number}))
	v.Output, v.Text = last.Output, last.Text
	if s.Started > 0 {
		v.Deleted = m.deleted(n, number)
	}
	return v
}

// deleted is the name of a child that has started and was deleted; empty: it exists.
func (m *mind) deleted(n v1alpha1.Node, number int) string {
	if m.child(place{n.Name, number}) != nil {
		return ""
	}
	return nameOf(m.run, n, number)
}

// turnOf is one child as expressions read it: an item or an iteration. What did
// not succeed has said nothing.
func turnOf(c *v1alpha1.Run) workflow.NodeValue {
	switch {
	case c == nil:
		return workflow.NodeValue{State: graph.Failed}
	case !runstatus.IsFinished(c):
		return workflow.NodeValue{State: graph.Running}
	case !succeeded(c):
		return workflow.NodeValue{State: graph.Failed}
	}
	v := workflow.NodeValue{State: graph.Succeeded}
	said := v1alpha1.Result{}
	if p := c.Status.Progress; p != nil && p.Result != nil {
		said = *p.Result
	}
	if said.Output != "" {
		v.Output = json.RawMessage(said.Output)
	}
	if c.Spec.Workflow == "" {
		v.Text = &said.Text
	}
	return v
}

// child is the child in a place; nil: there is none.
func (m *mind) child(at place) *v1alpha1.Run { return m.byPlace[at] }

// When says whether a node is to be done.
func (m *mind) When(node string) (bool, error) {
	yes, err := m.program.When(node, m.known())
	return yes, m.note(node, err)
}

// Items says how many items a node has.
func (m *mind) Items(node string) (int, error) {
	list, err := m.list(node)
	return len(list), m.note(node, err)
}

func (m *mind) list(node string) ([]json.RawMessage, error) {
	if list, known := m.items[node]; known {
		return list, nil
	}
	list, err := m.program.Items(node, m.known())
	if err == nil {
		m.items[node] = list
	}
	return list, err
}

// Until says whether a loop has reached its end.
func (m *mind) Until(node string, iteration int) (bool, error) {
	self := turnOf(m.child(place{node, iteration}))
	yes, err := m.program.Until(node, iteration, self, m.known())
	return yes, m.note(node, err)
}

// Input works out what a child is given. An approval asks even where its message
// cannot be worked out.
func (m *mind) Input(node string, number int) error {
	if m.program.Node(node).Approval != nil {
		return nil
	}
	in, err := m.input(place{node, number})
	if err == nil {
		m.inputs[place{node, number}] = in
		return nil
	}
	if p, is := errors.AsType[*workflow.Problem](err); is {
		err = &graph.ReasonError{Reason: p.Reason, Err: err}
	}
	return m.note(node, err)
}

func (m *mind) input(at place) (in input, err error) {
	turn, err := m.turn(at)
	if err != nil {
		return in, err
	}
	if m.program.Node(at.node).Prompt != "" {
		if in.prompt, err = m.program.Prompt(at.node, turn, m.known()); err != nil {
			return in, err
		}
	}
	in.input, err = m.program.NodeInput(at.node, turn, m.known())
	return in, err
}

// turn is what an item, or an iteration, knows of its place.
func (m *mind) turn(at place) (workflow.Iteration, error) {
	t := workflow.Iteration{Number: at.number}
	switch n := m.program.Node(at.node); {
	case n.ForEach != nil:
		list, err := m.list(at.node)
		if err != nil {
			return t, err
		}
		if at.number >= len(list) {
			return t, fmt.Errorf("forEach.items has %d items now, and item %d was to begin: what it reads has been deleted", len(list), at.number)
		}
		t.Item = list[at.number]
	case n.Loop != nil && at.number > 1:
		before := turnOf(m.child(place{at.node, at.number - 1}))
		t.Previous = &before
	}
	return t, nil
}

// note remembers why an expression failed. The graph asks also about what is not
// to be done any more, so it counts only where the node fails with that reason.
func (m *mind) note(node string, err error) error {
	if err == nil {
		return nil
	}
	reason := v1alpha1.NodeReasonExpression
	if known, is := errors.AsType[*graph.ReasonError](err); is {
		reason = known.Reason
	}
	m.problems[node] = problem{reason, err.Error()}
	return err
}

// explain says why a node failed, in a sentence.
func (m *mind) explain(node string) string {
	s := m.stands(node)
	return fmt.Sprintf("Node %s failed, reason %s: %s", node, s.Reason, m.why(node, s))
}

func (m *mind) why(node string, s graph.Status) string {
	if p := m.problems[node]; p.text != "" && p.reason == s.Reason {
		return p.text
	}
	for at, r := range m.refused {
		if at.node == node {
			return r.text
		}
	}
	for _, c := range m.children {
		if o := runstatus.OutcomeOf(c.Status); placeOf(c).node == node && runstatus.IsFinished(c) && !succeeded(c) && nodeReason(c) == s.Reason {
			return fmt.Sprintf("Run %s: %s", c.Name, o.Message)
		}
	}
	switch s.Reason {
	case v1alpha1.NodeReasonLost:
		return "one of its Runs was deleted before it finished"
	case v1alpha1.NodeReasonTooManyItems:
		return "forEach.items has more items than a node, or a Run, may have (500)"
	case v1alpha1.ReasonIterationLimit:
		return fmt.Sprintf("loop.until was not true after %d iterations; raise loop.maxIterations, or ask for less", s.Started)
	case v1alpha1.ReasonDenied:
		return m.denied(node)
	}
	return "it did not start"
}
