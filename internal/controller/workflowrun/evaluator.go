package workflowrun

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/workflow"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

// evaluator implements graph.Evaluator: it evaluates CEL expressions against the results of
// child Runs.
type evaluator struct {
	state

	nodeState func(node string) graph.Status // by now
	values    workflow.Values
	evaluated map[string]graph.Status // of the nodes among values
	byKey     map[childKey]*v1alpha1.Run
	items     map[string][]json.RawMessage
	inputs    map[childKey]input
	problems  map[string]problem // of nodes, the last one
}

// A problem is the reason why a node fails, or would fail, without a child that shows it.
type problem struct{ reason, text string }

// An input is the input of a child.
type input struct {
	prompt string
	input  json.RawMessage
}

// newEvaluator returns an evaluator for the recorded state. end and told are the reason and message of the end, for
// nodes of finally.
func newEvaluator(s state, end, told string) *evaluator {
	m := &evaluator{
		state:     s,
		evaluated: map[string]graph.Status{},
		byKey:     map[childKey]*v1alpha1.Run{},
		items:     map[string][]json.RawMessage{},
		inputs:    map[childKey]input{},
		problems:  map[string]problem{},
	}
	m.nodeState = func(node string) graph.Status { return recordedState(s, node) }
	if had := s.recordedEnd(); had != nil {
		end, told = had.Reason, had.Message
	}
	m.values = workflow.Values{
		Run:   workflow.RunValues{Namespace: s.run.Namespace, Name: s.run.Name, UID: string(s.run.UID), Reason: end, Message: told},
		Nodes: map[string]workflow.NodeValue{},
	}
	m.values.Input, _ = s.program.Input(inputOf(s.run)) // it fitted when the Run began
	for _, c := range s.children {
		m.byKey[keyOf(c)] = c
	}
	return m
}

// Watch sets the function that returns the current states of nodes.
func (e *evaluator) Watch(stands func(node string) graph.Status) { e.nodeState = stands }

// current returns all values that expressions can read now.
func (e *evaluator) current() workflow.Values {
	for _, n := range e.nodes() {
		status := e.nodeState(n.Name)
		if had, known := e.evaluated[n.Name]; known && had == status {
			continue
		}
		e.evaluated[n.Name], e.values.Nodes[n.Name] = status, e.valueOf(n, status)
	}
	v := e.values
	if v.Run.Reason != "" {
		return v
	}
	v.Run.Reason = v1alpha1.ReasonFinished // to finally, which begins when all has ended
	if node := e.firstFailure(); node != "" {
		v.Run.Reason, v.Run.Message = v1alpha1.ReasonNodeFailed, e.explain(node)
	}
	return v
}

// firstFailure returns the first node whose failure ends the Run, or an empty name. A node whose Runs were stopped
// together with the Run does not count.
func (e *evaluator) firstFailure() string {
	for _, n := range e.revision.Spec.Nodes {
		status := e.nodeState(n.Name)
		failing := status.State == graph.Failed || status.State == graph.Running && status.Reason != "" && status.Reason != graph.ReasonQueued && status.Reason != graph.ReasonQuotaExceeded
		if failing && status.Reason != graph.ReasonCancelled && n.OnFailure != v1alpha1.OnFailureContinue {
			return n.Name
		}
	}
	return ""
}

// valueOf returns a node as expressions read it.
func (e *evaluator) valueOf(n v1alpha1.Node, status graph.Status) workflow.NodeValue {
	node := n.Name
	v := workflow.NodeValue{State: status.State, Counts: status}
	switch {
	case n.Approval != nil:
		if status.State == graph.Succeeded || status.State == graph.Failed {
			v.Output = e.approvalOutput(node)
		}
		return v
	case !status.State.Ended(): // what reads it waits for it
		return v
	case n.ForEach != nil:
		v.Items = make([]workflow.NodeValue, status.Total)
		for i := range v.Items {
			v.Items[i] = iterationValue(e.child(childKey{node, i}))
			if v.Deleted == "" && i < status.Started {
				v.Deleted = e.deleted(n, i)
			}
		}
		return v
	}
	number := 0
	if n.Loop != nil {
		number = status.Started
	}
	last := iterationValue(e.child(childKey{node, number}))
	v.Output, v.Text = last.Output, last.Text
	if status.Started > 0 {
		v.Deleted = e.deleted(n, number)
	}
	return v
}

// deleted returns the name of a child that was started and deleted; empty: it exists.
func (e *evaluator) deleted(n v1alpha1.Node, number int) string {
	if e.child(childKey{n.Name, number}) != nil {
		return ""
	}
	return childName(e.run, n, number)
}

// iterationValue returns the child of an item or an iteration as expressions read it. It has an output only if it
// succeeded.
func iterationValue(c *v1alpha1.Run) workflow.NodeValue {
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

// child returns the child with a key, or nil.
func (e *evaluator) child(at childKey) *v1alpha1.Run { return e.byKey[at] }

// When reports whether a node is executed.
func (e *evaluator) When(node string) (bool, error) {
	yes, err := e.program.When(node, e.current())
	return yes, e.recordProblem(node, err)
}

// Items returns how many items a node has.
func (e *evaluator) Items(node string) (int, error) {
	list, err := e.itemsOf(node)
	return len(list), e.recordProblem(node, err)
}

func (e *evaluator) itemsOf(node string) ([]json.RawMessage, error) {
	if list, known := e.items[node]; known {
		return list, nil
	}
	list, err := e.program.Items(node, e.current())
	if err == nil {
		e.items[node] = list
	}
	return list, err
}

// Until reports whether a loop has ended.
func (e *evaluator) Until(node string, iteration int) (bool, error) {
	self := iterationValue(e.child(childKey{node, iteration}))
	yes, err := e.program.Until(node, iteration, self, e.current())
	return yes, e.recordProblem(node, err)
}

// Input computes the input of a child. An approval is requested even if its message cannot be computed.
func (e *evaluator) Input(node string, number int) error {
	if e.program.Node(node).Approval != nil {
		return nil
	}
	in, err := e.input(childKey{node, number})
	if err == nil {
		e.inputs[childKey{node, number}] = in
		return nil
	}
	if p, is := errors.AsType[*workflow.Problem](err); is {
		err = &graph.ReasonError{Reason: p.Reason, Err: err}
	}
	return e.recordProblem(node, err)
}

func (e *evaluator) input(at childKey) (in input, err error) {
	turn, err := e.iteration(at)
	if err != nil {
		return in, err
	}
	if e.program.Node(at.node).Prompt != "" {
		if in.prompt, err = e.program.Prompt(at.node, turn, e.current()); err != nil {
			return in, err
		}
	}
	in.input, err = e.program.NodeInput(at.node, turn, e.current())
	return in, err
}

// iteration returns the position of an item, or of an iteration, for expressions.
func (e *evaluator) iteration(at childKey) (workflow.Iteration, error) {
	t := workflow.Iteration{Number: at.index}
	switch n := e.program.Node(at.node); {
	case n.ForEach != nil:
		list, err := e.itemsOf(at.node)
		if err != nil {
			return t, err
		}
		if at.index >= len(list) {
			return t, fmt.Errorf("forEach.items has %d items now, and item %d was to begin: what it reads has been deleted", len(list), at.index)
		}
		t.Item = list[at.index]
	case n.Loop != nil && at.index > 1:
		before := iterationValue(e.child(childKey{at.node, at.index - 1}))
		t.Previous = &before
	}
	return t, nil
}

// recordProblem records why an expression failed. The graph also evaluates expressions of nodes that will not run, so
// the problem counts only if the node fails with that reason.
func (e *evaluator) recordProblem(node string, err error) error {
	if err == nil {
		return nil
	}
	reason := v1alpha1.NodeReasonExpression
	if known, is := errors.AsType[*graph.ReasonError](err); is {
		reason = known.Reason
	}
	e.problems[node] = problem{reason, err.Error()}
	return err
}

// explain describes why a node failed, in a sentence.
func (e *evaluator) explain(node string) string {
	status := e.nodeState(node)
	return fmt.Sprintf("Node %s failed, reason %s: %s", node, status.Reason, e.cause(node, status))
}

func (e *evaluator) cause(node string, status graph.Status) string {
	if p := e.problems[node]; p.text != "" && p.reason == status.Reason {
		return p.text
	}
	for at, r := range e.refused {
		if at.node == node {
			return r.text
		}
	}
	for _, c := range e.children {
		if o := runstatus.OutcomeOf(c.Status); keyOf(c).node == node && runstatus.IsFinished(c) && !succeeded(c) && nodeReason(c) == status.Reason {
			return fmt.Sprintf("Run %s: %s", c.Name, o.Message)
		}
	}
	switch status.Reason {
	case v1alpha1.NodeReasonLost:
		return "one of its Runs was deleted before it finished"
	case v1alpha1.NodeReasonTooManyItems:
		return "forEach.items has more items than a node, or a Run, may have (500)"
	case v1alpha1.ReasonIterationLimit:
		return fmt.Sprintf("loop.until was not true after %d iterations; raise loop.maxIterations, or ask for less", status.Started)
	case v1alpha1.ReasonDenied:
		return e.denialReason(node)
	}
	return "it did not start"
}
